import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';

const readKeys = defineStatement({
  name: 'read_keys_of_replaced_handoffs',
  text: `
    SELECT f.blob_key AS key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
    WHERE s.execution_id = $1 AND s.id <> $2 AND ($3 OR NOT s.is_ready) AND f.blob_key IS NOT NULL`,
  row: { key: text() },
});

const deleteRows = defineStatement({
  name: 'delete_replaced_handoffs',
  text: 'DELETE FROM snapshots WHERE execution_id = $1 AND id <> $2 AND ($3 OR NOT is_ready)',
  row: {},
});

/**
 * Deletes handoffs of the execution. The transaction holds the lock of its run's row. Returns the keys of the blobs that
 * the caller deletes after the commit.
 */
export async function deleteReplacedHandoffs(
  tx: Queryable,
  executionId: string,
  { except, which }: { readonly except: string; readonly which: 'all' | 'not_ready' },
): Promise<string[]> {
  const values = [executionId, except, which === 'all'];
  const keys = await tx.query(readKeys, values);
  await tx.query(deleteRows, values);
  return keys.map(({ key }) => key);
}
