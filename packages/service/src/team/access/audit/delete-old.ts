import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../../platform/store/database/statement.ts';

const batchSize = 5_000;

const deleteOld = defineStatement({
  name: 'delete_old_audit_entries',
  text: `
    WITH gone AS (
      DELETE FROM audit_entries WHERE id IN (
        SELECT id FROM audit_entries WHERE occurred_at < now() - $1 * interval '1 day' ORDER BY occurred_at LIMIT ${batchSize})
      RETURNING 1)
    SELECT count(*)::integer AS rows FROM gone`,
  row: { rows: integer },
});

/** Deletes a batch of the entries that are so many days old; 0 keeps all. `more` is true where others may be left. */
export async function deleteOldChanges(db: Queryable, days: number): Promise<{ rows: number; more: boolean }> {
  if (days === 0) return { rows: 0, more: false };
  const [deleted] = await db.query(deleteOld, [days]);
  const rows = deleted?.rows ?? 0;
  return { rows, more: rows === batchSize };
}
