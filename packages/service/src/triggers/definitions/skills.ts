/** Checks and reads the skills whose files are a part of a definition. */
import { definedSkillSpec, isSkillPath } from '@runyard/definitions/defined-skill';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, json } from '../../platform/store/database/statement.ts';
import { bundleOf, type ReadDefinedSkill } from '../../team/skills/defined.ts';
import type { FaultList } from './fault-list.ts';
import type { StoredFile } from './stored.ts';

const nameOf = (path: string): string => path.split('/').at(-2) ?? '';

/**
 * Returns the specs of the skills that an agent gets from the definition: its own skills, and the shared skills of all agents. An own
 * skill replaces a shared skill with the same name.
 */
export function skillsOfAgent({ skills }: FactoryDefinition, factoryUid: string, agent: string): string[] {
  const paths = skills.map(({ path }) => path).filter(isSkillPath);
  const own = paths.filter((path) => path.startsWith(`agents/${agent}/`));
  const names = new Set(own.map(nameOf));
  const shared = paths.filter((path) => path.startsWith('skills/') && !names.has(nameOf(path)));
  return [...own, ...shared].map((path) => definedSkillSpec({ factoryUid, path }));
}

/**
 * How many milliseconds parsing the front matter of all skills of a definition may take. One skill usually takes less than a
 * millisecond; a hostile skill can take 100.
 */
const parseMs = 3_000;

/** Adds a fault for each SKILL.md that no run could use. */
export function checkSkills({ skills }: FactoryDefinition, faults: FaultList): void {
  const until = performance.now() + parseMs;
  for (const { path } of skills.filter((file) => isSkillPath(file.path))) {
    const isLate = performance.now() > until;
    const late = 'was not read, because the front matter of other skills takes too long to read';
    const bundle = isLate ? late : bundleOf(path, skills);
    if (typeof bundle === 'string') faults.add(path, [], bundle);
  }
}

const readFiles = defineStatement({
  name: 'read_skill_of_definition',
  text: `
    SELECT c.revision, coalesce((
      SELECT jsonb_agg(f) FROM jsonb_array_elements(c.content->'skills') AS f WHERE starts_with(f ->> 'path', $3)
    ), '[]') AS files
    FROM content_revisions c WHERE c.team_id = $1 AND c.kind = 'definition' AND c.uid = $2
      AND CASE WHEN $4::integer IS NULL THEN c.superseded_at IS NULL ELSE c.revision = $4 END`,
  row: { revision: integer, files: json<StoredFile[]>() },
});

/** Returns a function that reads a skill of a definition. */
export const definedSkillsWith =
  (db: Queryable): ReadDefinedSkill =>
  async (teamId, { factoryUid, path }, ofRun) => {
    const folder = path.slice(0, -'SKILL.md'.length);
    const [found] = await db.query(readFiles, [teamId, factoryUid, folder, ofRun ?? null]);
    if (!found?.files.some((file) => file.path === path)) return null;
    const { revision, files } = found;
    return { version: revision, files: files.map((file) => ({ path: file.path, text: file.content })) };
  };
