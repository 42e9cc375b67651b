import type { AgentTask, TaskSkill } from '@runyard/contract/agent/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { ErrorDetail } from '@runyard/contract/wire/errors';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { CodeHosts, CodeHostUser } from '../../../team/code-hosts/code-hosts.ts';
import { type RunSkill, type RunSkillDeps, resolveRunSkills } from '../../../team/skills/of-run.ts';
import { skillsOfRun } from '../../../team/skills/skills-of-run.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { recordSkills } from '../../runs/submit/run-skills.ts';
import type { TaskRow } from './read-task-row.ts';
import { detailOf } from './repositories-of-task.ts';

/** `skill_unfit`: a skill does not exist or is malformed; `skill_unavailable`: the code host cannot answer now. */
export type TaskSkills =
  | { readonly kind: 'skills'; readonly skills: readonly RunSkill[] }
  | { readonly kind: 'skill_unfit' | 'skill_unavailable'; readonly message: string }
  | { readonly kind: 'no_access'; readonly message: string; readonly detail: ErrorDetail };

/**
 * Returns the skills of an execution's run, and stores with the run where the skills were found. `values`: secrets of the run. They are
 * removed from the skills, because the skills are stored with the run.
 */
export async function skillsOfTask(
  deps: RunSkillDeps & { readonly codeHosts: CodeHosts; baseUrl(): string },
  { runId, teamId }: RunSession,
  codeHostUser: CodeHostUser,
  { config, contents }: Pick<TaskRow, 'config' | 'contents'>,
  values: readonly string[],
): Promise<TaskSkills> {
  const resolved = await resolveRunSkills(deps, {
    runId,
    teamId,
    codeHostUser,
    contents,
    specs: skillsOfRun(config),
    values,
  });
  const clean = (message: string) => createRedactor(values).whole(message);
  switch (resolved.kind) {
    case 'skills':
      // An earlier attempt may have stored the skills and then have been killed before it recorded where they were found. So record this in
      // that case too.
      if (config.skill_spec !== undefined) await recordSkills(deps.db, runId, resolved.skills);
      return resolved;
    case 'unfit':
      return { kind: 'skill_unfit', message: clean(resolved.message) };
    case 'unavailable':
      return { kind: 'skill_unavailable', message: `${clean(resolved.message)} Start the run again later.` };
    case 'refused': {
      const host = deps.codeHosts.hostOf(resolved.repository);
      const message = `${clean(resolved.message)}\nStore a credential for ${host} with bin/runyard code-hosts add, or name another skill, and start the run again.`;
      return { kind: 'no_access', message, detail: detailOf(deps, resolved.repository, [resolved.repository]) };
    }
  }
}

/** Returns the members of a task for its skills: the files of the skills, and the text of the first skill after the base prompt. */
export function membersOfSkills(
  skills: readonly RunSkill[],
  config: AmbientAgentConfig,
): Pick<AgentTask, 'agent_config' | 'skills'> {
  const [first] = skills;
  if (first === undefined) return { agent_config: config };
  // Add the text of a skill only if the run must follow this skill. Otherwise the agent decides itself which skills it reads.
  const isFollowed = config.skill_spec !== undefined;
  const base = [config.base_prompt ?? '', isFollowed ? first.body : '', aboutSkills(skills, isFollowed)]
    .filter((part) => part.trim() !== '')
    .join('\n\n');
  const files: TaskSkill[] = skills.map(({ name, description, files }) => ({ name, description, files: [...files] }));
  return { agent_config: { ...config, base_prompt: base }, skills: files };
}

/** Returns the text that tells the agent where the files of the skills are. */
function aboutSkills(skills: readonly RunSkill[], isFollowed: boolean): string {
  const lines = skills.map(({ name, description }) => `- ${name} (~/.agents/skills/${name}/SKILL.md): ${description}`);
  const use = isFollowed
    ? 'The text of the first is above; read another one when the task needs it'
    : 'Read one when the task needs it';
  return `Skills of this run, each in a folder of the home folder, with the files that it names. ${use}:\n${lines.join('\n')}`;
}

/** Returns the first prompt of a run that was created without a prompt: it tells the agent to follow the run's skill. */
export function promptOfSkill(skills: readonly RunSkill[], isRunbook: boolean): string {
  const [first] = skills;
  if (first === undefined) return '';
  // The model `runbook` only executes commands in the prompt, and reads no other text.
  return isRunbook ? first.body : `Follow the skill ${first.name}.`;
}
