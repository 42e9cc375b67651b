/** Deletes rows that are useless after a fixed time. */
import type { RowRule } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';

const batchSize = 5000;

/** Deletes a batch of the rows of a rule; `more` is true where others may be left. */
export async function deleteOldRows(
  db: Queryable,
  { table, isOver }: RowRule,
): Promise<{ rows: number; more: boolean }> {
  const deleted = await db.query(
    `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE ${isOver} LIMIT ${batchSize})) AND ${isOver} RETURNING 1 AS one`,
  );
  return { rows: deleted.length, more: deleted.length === batchSize };
}
