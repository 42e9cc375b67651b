import type { BlobColumn, DeletedDetail } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../platform/store/database/statement.ts';

const ofRuns = (table: string): string => `SELECT blob_key FROM ${table} WHERE run_id = ANY($1::uuid[])`;

/** Names the columns that hold the blob keys of attachments, artifacts and handoffs. */
export const fileBlobs: readonly BlobColumn[] = [
  { prefix: 'attachments', table: 'attachments', column: 'blob_key', ofRuns: ofRuns('attachments') },
  {
    prefix: 'attachments',
    table: 'prepared_attachments',
    column: 'blob_key',
    ofRuns: ofRuns('prepared_attachments'),
  },
  { prefix: 'artifacts', table: 'artifacts', column: 'blob_key', ofRuns: ofRuns('artifacts') },
  {
    prefix: 'handoffs',
    table: 'snapshot_files',
    column: 'blob_key',
    ofRuns: `SELECT f.blob_key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id WHERE s.run_id = ANY($1::uuid[])`,
  },
];

const deleteFiles = defineStatement({
  name: 'delete_old_followup_files',
  text: `
    DELETE FROM attachments a USING followups f
    WHERE a.run_id = ANY($1::uuid[]) AND f.execution_id IS NOT NULL AND f.id = a.followup_id RETURNING a.blob_key AS key`,
  row: { key: nullable(text()) },
});

const deleteChanges = defineStatement({
  name: 'delete_old_changes',
  text: 'UPDATE run_changes SET content = NULL WHERE run_id = ANY($1::uuid[]) AND content IS NOT NULL',
  row: {},
});

/**
 * For old runs, deletes the files of follow-ups that the agent has received, and the lists of changed files. Keeps the files of the run's
 * request, because a rerun needs them.
 */
export async function deleteFollowupFiles(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(deleteChanges, [runIds]);
  const files = await tx.query(deleteFiles, [runIds]);
  return { blobKeys: files.flatMap(({ key }) => key ?? []), isDone: true };
}

const deleteOfWithdrawn = defineStatement({
  name: 'delete_files_of_followup',
  text: 'DELETE FROM attachments WHERE followup_id = $1 RETURNING blob_key AS key',
  row: { key: nullable(text()) },
});

/** Deletes the files of a follow-up that is withdrawn. Returns the keys of their blobs, which the caller deletes after the commit. */
export async function deleteFilesOfFollowup(tx: Queryable, followupId: string): Promise<readonly string[]> {
  const files = await tx.query(deleteOfWithdrawn, [followupId]);
  return files.flatMap(({ key }) => key ?? []);
}
