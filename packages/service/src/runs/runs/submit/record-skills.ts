import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';

/** A run whose request gave no name has the name of the skill's folder already, if the skill has a folder. */
const recordStatement = defineStatement({
  name: 'record_skills_of_run',
  text: `
    UPDATE runs SET skill_spec = ($2::text[])[1],
      config = config || jsonb_build_object('skill_spec', ($2::text[])[1])
        || CASE WHEN config ? 'skills' THEN jsonb_build_object('skills', to_jsonb($2::text[])) ELSE '{}' END
        || CASE WHEN config ? 'name' THEN '{}' ELSE jsonb_build_object('name', $3::text) END,
      name = CASE WHEN config ? 'name' THEN name ELSE $3 END
    WHERE id = $1 AND (skill_spec IS DISTINCT FROM ($2::text[])[1] OR NOT config ? 'name'
      OR (config ? 'skills' AND config->'skills' <> to_jsonb($2::text[])))`,
  row: {},
});

/** Records the skills of a run as they were found: each with its path, and for the run the name of the first. */
export async function recordSkills(
  db: Queryable,
  runId: string,
  skills: readonly { readonly spec: string; readonly name: string }[],
): Promise<void> {
  const [first] = skills;
  if (first === undefined) return;
  await db.query(recordStatement, [runId, skills.map(({ spec }) => spec), first.name]);
}
