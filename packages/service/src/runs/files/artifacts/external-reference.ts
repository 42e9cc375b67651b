import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { canonicalUrl } from './canonical-url.ts';

const findNewest = defineStatement({
  name: 'find_run_by_external_reference',
  text: `
    SELECT r.id FROM artifacts a JOIN runs r ON r.id = a.run_id
    WHERE a.team_id = $1 AND a.canonical_url = $2 AND a.artifact_type = 'EXTERNAL_REFERENCE'
    ORDER BY r.created_at DESC, r.id DESC LIMIT 1`,
  row: { id: uuid },
});

/** Returns the newest run of the team that reported the locator; null: none did, or the text is no locator. */
export async function findRunByExternalReference(
  db: Queryable,
  teamId: string,
  locator: string,
): Promise<string | null> {
  const canonical = canonicalUrl(locator);
  if (canonical === null) return null;
  const [run] = await db.query(findNewest, [teamId, canonical]);
  return run?.id ?? null;
}
