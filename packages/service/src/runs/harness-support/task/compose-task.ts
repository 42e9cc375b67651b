import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { atBase } from '@runyard/contract/agent/base-commits';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import { servicesOf } from '@runyard/contract/environments/services';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';
import type { Models } from '../../../team/models/models.ts';
import type { ResolvedModel } from '../../../team/models/resolution.ts';
import type { RunSkill } from '../../../team/skills/of-run.ts';
import type { EarlierConversation } from '../../conversations/earlier-conversation.ts';
import { readAllowedForRun } from '../../executions/held-actions/held-actions.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { agentAttachment } from '../../files/attachments/read.ts';
import { type JoinedFollowup, readTakenFiles } from '../../runs/follow-ups/take-followups.ts';
import { readGithubTools } from '../../runs/github-tools.ts';
import { childRunsOf } from '../../runs/tree/permission.ts';
import type { TaskAccess } from './access-of-task.ts';
import type { TaskFiles } from './files-of-task.ts';
import { authorOf, checkpointsOf, lossOf, type TaskRow } from './read-task-row.ts';
import { membersOfSkills, promptOfSkill } from './skills-of-task.ts';

export interface ComposeDeps {
  readonly db: Queryable;
  readonly models: Pick<Models, 'fallsBackToRunbook'>;
  readonly codeHosts: Pick<CodeHosts, 'urlOf'>;
  readonly settings: Pick<Settings, 'RUNYARD_ARTIFACT_MB' | 'RUNYARD_WORKSPACE_MB' | 'RUNYARD_CHECKPOINT_SECONDS'>;
  /** Origin of the service. */
  baseUrl(): string;
}

/** The parts of a task that were found and checked. */
export interface TaskParts {
  readonly row: TaskRow;
  /** Undefined: the run configures a program as its harness, which may use a model that the service does not know. */
  readonly model: ResolvedModel | undefined;
  readonly files: TaskFiles;
  readonly access: TaskAccess;
  readonly skills: readonly RunSkill[];
  /** The follow-ups that become part of the first prompt. */
  readonly followups: readonly JoinedFollowup[];
  readonly earlier: EarlierConversation;
}

/** Returns the task of an agent in the form of the protocol. */
export async function composeTask(deps: ComposeDeps, session: RunSession, parts: TaskParts): Promise<AgentTask> {
  const { row, model, files, access, skills, followups, earlier } = parts;
  const { db, settings } = deps;
  const allowed = row.config.approval_policy === 'ask' ? await readAllowedForRun(db, session.runId) : [];
  const isRunbook = findHarness(row.harness)?.isBuiltIn === true && model?.agentModel === undefined;
  const firstPrompt = row.prompt.trim() === '' ? promptOfSkill(skills, isRunbook) : row.prompt;
  const { prompt, mode, answer } = firstTurnOf({ ...row, prompt: firstPrompt }, followups);
  const childRuns = childRunsOf(row.config, mode);
  const task: AgentTask = {
    run_id: session.runId,
    execution_id: session.executionId,
    execution_number: session.executionNumber,
    conversation_id: row.conversation_id,
    title: row.title,
    prompt,
    ...(mode ? { mode } : {}),
    ...(earlier.conversation ? { conversation: earlier.conversation } : {}),
    ...(files.workspace ? { workspace: files.workspace } : {}),
    max_output_file_bytes: Math.min(row.max_output_file_mb, settings.RUNYARD_ARTIFACT_MB) * 1024 * 1024,
    max_workspace_bytes: row.fresh_check === null ? settings.RUNYARD_WORKSPACE_MB * 1024 * 1024 : 0,
    ...checkpointsOf(row, settings),
    ...lossOf(row, files.saved, earlier.record),
    ...(row.ended_as === null ? {} : { ended_as: row.ended_as }),
    ...(answer ? { decision: decisionOf(answer) } : {}),
    ...(allowed.length > 0 ? { allowed: [...allowed] } : {}),
    ...membersOfSkills(skills, access.mcp.config),
    ...(access.mcp.servers.length === 0 ? {} : { mcp_servers: [...access.mcp.servers] }),
    attachments: await attachmentsOfTask(db, session, row, files),
    harness: harnessOf(deps, row, model),
    ...environmentOf(row),
    author: authorOf(row, deps.baseUrl()),
    ...(childRuns ? { child_runs: childRuns } : {}),
    ...(row.parent_id ? { parent_run: { run_id: row.parent_id, title: row.parent_title ?? '' } } : {}),
    ...freshCheckMember(row),
    github_tools: await readGithubTools(db, session.runId),
    repositories: (row.environment_config?.github_repos ?? []).map((repository) => ({
      ...repository,
      url: deps.codeHosts.urlOf(repository).href,
      gateway_path: gatewayPathOf(repository),
      ...access.namedObjects?.mirrorOf(repository),
    })),
    ...secretsOf(row, files, access),
    ...access.namedObjects?.prepared,
  };
  return row.comparison_commits === null ? task : atBase(task, row.comparison_commits);
}

/** Returns the member of a task that only runs a check. */
const freshCheckMember = ({ fresh_check: check }: TaskRow): Pick<AgentTask, 'fresh_check'> =>
  check === null
    ? {}
    : { fresh_check: { trusted_paths: [...check.trustedPaths], base_commits: [...check.baseCommits] } };

/** Returns the harness of a task with its model. */
function harnessOf({ models }: ComposeDeps, row: TaskRow, resolved: ResolvedModel | undefined): AgentTask['harness'] {
  const { harness } = row.config;
  const model = resolved?.agentModel;
  return {
    type: row.harness,
    ...(harness?.command ? { command: harness.command } : {}),
    ...(harness?.env ? { env: harness.env } : {}),
    ...(model ? { model } : {}),
    ...(resolved && !model && models.fallsBackToRunbook(row.config.model_id ?? harness?.model_id)
      ? { no_model_configured: true as const }
      : {}),
    ...(harness?.reasoning_level ? { reasoning_level: harness.reasoning_level } : {}),
  };
}

/** Returns the member of a task that describes its environment. */
function environmentOf({ environment_uid: uid, environment_config: config }: TaskRow): Pick<AgentTask, 'environment'> {
  if (!config) return {};
  const services = config.services ? { services: servicesOf(config) } : {};
  return { environment: { ...(uid === null ? {} : { uid }), config: { ...config, ...services } } };
}

/** Returns the members of a task with secrets. Members without values are absent. */
function secretsOf(
  row: TaskRow,
  { isSetUp }: TaskFiles,
  { granted: { secrets, setupSecrets, redact } }: TaskAccess,
): Pick<AgentTask, 'secrets' | 'setup_secrets' | 'redact'> {
  // The setup of an environment with its own Debian also runs before a workspace is restored.
  const runsSetup = !row.has_started && (!isSetUp || row.environment_config?.system !== undefined);
  return {
    ...(secrets.length > 0 ? { secrets } : {}),
    ...(runsSetup && setupSecrets.length > 0 ? { setup_secrets: setupSecrets } : {}),
    ...(redact.length > 0 ? { redact } : {}),
  };
}

/** Returns the prompt and mode of the execution's first turn, and the follow-up that answers the agent's open request. */
function firstTurnOf(row: TaskRow, followups: readonly JoinedFollowup[]) {
  const isContinued = row.continues !== null;
  const answer = followups.findLast(({ request }) => request !== null);
  const messages = followups.filter((followup) => followup !== answer).map(({ message }) => message);
  const parts = (isContinued ? messages : [row.prompt, ...messages]).filter((part) => part.trim() !== '');
  // The mode "plan" of a run applies only to the run's own prompt. A follow-up that asks for a plan has this mode itself.
  const modeOfRun = isContinued && row.mode === 'plan' ? null : row.mode;
  const mode = followups.findLast((followup) => followup.mode !== null)?.mode ?? answer?.request?.mode ?? modeOfRun;
  return { prompt: parts.join('\n\n') || (answer ? '' : 'Continue.'), mode, answer };
}

/**
 * Returns the attachments of the run's request and of the follow-ups that agents have taken. `earlier` marks attachments that an earlier
 * execution received. A run that begins anew gets no attachments of earlier follow-ups.
 */
async function attachmentsOfTask(
  db: Queryable,
  session: RunSession,
  row: TaskRow,
  { isRestored, beginsAnew }: TaskFiles,
): Promise<AgentTask['attachments']> {
  const earlier = (is: boolean) => (is ? { earlier: true as const } : {});
  const taken = row.has_followups ? await readTakenFiles(db, session) : [];
  return [
    ...row.attachments.map((file) => ({ ...agentAttachment(file), ...earlier(isRestored) })),
    ...taken
      .filter(({ is_earlier }) => !(beginsAnew && is_earlier))
      .map(({ is_earlier, ...file }) => ({ ...agentAttachment(file), ...earlier(is_earlier) })),
  ];
}

/** Returns the request that the agent made to a person in an earlier sandbox, and the answer to this request. */
function decisionOf({ id, message, decision, request }: JoinedFollowup): AgentTask['decision'] {
  if (request === null) return undefined;
  const { asked_at: _, held: _held, mode: _mode, ...withoutTime } = request;
  return {
    request: withoutTime,
    follow_up_id: id,
    ...(decision ? { decision } : {}),
    ...(message.trim() === '' ? {} : { message }),
  };
}
