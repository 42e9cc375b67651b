import type { Repository } from '@runyard/contract/environments/repositories';
import { maxSkillsOfRun } from '@runyard/contract/limits';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import { isDefinedSkill } from '@runyard/definitions/defined-skill';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { skillsOfRun } from '../../../team/skills/skills-of-run.ts';
import { parseSkillSpec, specText } from '../../../team/skills/spec.ts';

/** The configuration, in which each skill has owner and repository, and the skill that the run follows. */
export interface CheckedSkills {
  readonly config: AmbientAgentConfig;
  readonly first?: string;
  readonly faults: readonly Fault[];
}

/**
 * Checks the skills of a request. Does not ask the code host, which may be slow: a later check, before the agent begins, finds out whether
 * the skills exist. `repositories`: repositories of the run's environment. A run follows the first skill of the request. Skills of a
 * factory's definition are only available to the agent, unless the request makes the run follow one of them.
 */
export function checkSkills(
  { skill, config = {} }: Pick<RunAgentRequest, 'skill' | 'config'>,
  repositories: readonly Repository[],
): CheckedSkills {
  const written = skillsOfRun(config, skill);
  const path =
    skill === undefined ? (config.skill_spec === undefined ? 'config.skills' : 'config.skill_spec') : 'skill';
  if (written.length > maxSkillsOfRun)
    return { config, faults: [{ path: 'config.skills', message: `a run has at most ${maxSkillsOfRun} skills` }] };
  const faults: Fault[] = [];
  const specs = written.map((text, index) => {
    if (isDefinedSkill(text)) return text;
    const spec = parseSkillSpec(text, repositories);
    if (typeof spec !== 'string') return specText(spec);
    faults.push({ path: index === 0 ? path : 'config.skills', message: spec });
    return text;
  });
  const isNamed = skill !== undefined || config.skill_spec !== undefined;
  const first = isNamed ? specs[0] : specs.find((spec) => !isDefinedSkill(spec));
  const skills = config.skills === undefined ? {} : { skills: specs };
  if (first === undefined) return { config: { ...config, ...skills }, faults };
  return { config: { ...config, skill_spec: first, ...skills }, first, faults };
}

/**
 * If the request gave no name, `name` may be the name of the skill's folder. This statement replaces that name by the real name of the
 * skill.
 */
const recordStatement = defineStatement({
  name: 'record_skills_of_run',
  text: `
    WITH before AS MATERIALIZED (SELECT config FROM run_requests WHERE run_id = $1), request AS (
      UPDATE run_requests SET config = config || jsonb_build_object('skill_spec', ($2::text[])[1])
        || CASE WHEN config ? 'skills' THEN jsonb_build_object('skills', to_jsonb($2::text[])) ELSE '{}' END
        || CASE WHEN config ? 'name' THEN '{}' ELSE jsonb_build_object('name', $3::text) END
      FROM runs r
      WHERE run_id = $1 AND r.id = $1 AND (r.skill_spec IS DISTINCT FROM ($2::text[])[1] OR NOT config ? 'name'
      OR (config ? 'skills' AND config->'skills' <> to_jsonb($2::text[])))
      RETURNING run_id
    )
    UPDATE runs SET skill_spec = ($2::text[])[1], name = CASE WHEN before.config ? 'name' THEN name ELSE $3 END
    FROM before, request WHERE id = run_id`,
  row: {},
});

/**
 * Records the skills that were found for a run, each with its path. If the configuration of the run has no name, the run gets the name of
 * the first skill.
 */
export async function recordSkills(
  db: Queryable,
  runId: string,
  skills: readonly { readonly spec: string; readonly name: string }[],
): Promise<void> {
  const [first] = skills;
  if (first === undefined) return;
  await db.query(recordStatement, [runId, skills.map(({ spec }) => spec), first.name]);
}
