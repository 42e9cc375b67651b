import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';

const readMissing = defineStatement({
  name: 'read_names_without_secret_of_team',
  text: `
    SELECT w.name FROM unnest($2::text[]) AS w (name)
    WHERE NOT EXISTS (
      SELECT FROM stored_secrets s WHERE s.team_id = $1 AND s.owner_uid IS NULL AND s.name = w.name)`,
  row: { name: text() },
});

/** Returns the names of which the team has no secret. Personal secrets do not count. */
export async function findMissingSecrets(db: Queryable, teamId: string, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return [];
  return (await db.query(readMissing, [teamId, names])).map(({ name }) => name);
}
