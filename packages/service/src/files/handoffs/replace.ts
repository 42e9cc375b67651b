import type { Queryable, Statement } from '../../store/database/database.ts';

const readKeys: Statement = {
  name: 'read_keys_of_replaced_snapshots',
  text: `
    SELECT f.blob_key AS key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
    WHERE s.execution_id = $1 AND s.id <> $2 AND ($3 OR NOT s.is_ready) AND f.blob_key IS NOT NULL`,
};

const deleteThem: Statement = {
  name: 'delete_replaced_snapshots',
  text: 'DELETE FROM snapshots WHERE execution_id = $1 AND id <> $2 AND ($3 OR NOT is_ready)',
};

/** Deletes snapshots of the execution, whose run's row the transaction has locked; gives the keys of blobs to delete after it. */
export async function deleteSnapshots(
  tx: Queryable,
  executionId: string,
  { except, which }: { readonly except: string; readonly which: 'all' | 'not_ready' },
): Promise<string[]> {
  const values = [executionId, except, which === 'all'];
  const keys = await tx.query<{ key: string }>(readKeys, values);
  await tx.query(deleteThem, values);
  return keys.map(({ key }) => key);
}
