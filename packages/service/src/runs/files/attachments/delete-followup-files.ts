import type { DeletedDetail } from '../../../platform/domain.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';

const deleteFiles = defineStatement({
  name: 'delete_old_followup_files',
  text: `
    DELETE FROM attachments a USING followups f
    WHERE a.run_id = ANY($1::uuid[]) AND f.execution_id IS NOT NULL AND f.id = a.followup_id RETURNING a.blob_key AS key`,
  row: { key: nullable(text()) },
});

/** Deletes the files of taken follow-ups of old runs. The files of the request stay: a rerun needs them. */
export async function deleteFollowupFiles(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  const files = await tx.query(deleteFiles, [runIds]);
  return { blobKeys: files.flatMap(({ key }) => key ?? []), isDone: true };
}
