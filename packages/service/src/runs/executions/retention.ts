import type { BlobColumn, DeletedDetail } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, json } from '../../platform/store/database/statement.ts';

const column = (prefix: string, name: string): BlobColumn => ({
  prefix,
  table: 'executions',
  column: name,
  ofRuns: `SELECT ${name} FROM executions WHERE run_id = ANY($1::uuid[])`,
});

/** The blobs of executions: transcripts, workspaces, and the memories of harnesses. */
export const executionBlobs: readonly BlobColumn[] = [
  column('transcripts', 'transcript_blob'),
  column('workspaces', 'workspace_blob'),
  column('memories', 'memory_blob'),
];

/**
 * Records the position up to which events were deleted. A live stream that has not sent all of these events then ends with 410 and does not
 * skip them.
 */
const markEvents = defineStatement({
  name: 'mark_deleted_conversation_events',
  text: `
    UPDATE runs r SET events_kept_after = deleted.seq
    FROM (SELECT run_id, max(seq) AS seq FROM conversation_events WHERE run_id = ANY($1::uuid[]) GROUP BY run_id) deleted
    WHERE r.id = deleted.run_id AND r.events_kept_after < deleted.seq`,
  row: {},
});

/** Sets `transcript_bytes` to 0, so that no transcript is composed again. */
const forgetBlobs = defineStatement({
  name: 'forget_blobs_of_old_executions',
  text: `
    WITH old AS (
      SELECT id, transcript_blob, memory_blob, workspace_blob FROM executions
      WHERE run_id = ANY($1::uuid[]) AND (transcript_bytes > 0 OR memory_blob IS NOT NULL OR workspace_turn IS NOT NULL) FOR UPDATE
    )
    UPDATE executions SET transcript_blob = NULL, transcript_bytes = 0, memory_blob = NULL, memory_turn = NULL, memory_request = NULL, memory_bytes = NULL,
      workspace_turn = NULL, workspace_blob = NULL, workspace_bytes = NULL, workspace_sha256 = NULL, workspace_session = NULL
    FROM old WHERE executions.id = old.id
    RETURNING to_jsonb(ARRAY[old.transcript_blob, old.memory_blob, old.workspace_blob]) AS keys`,
  row: { keys: json<(string | null)[]>() },
});

const deleteHeldActions = defineStatement({
  name: 'delete_held_actions_of_runs',
  text: 'DELETE FROM held_actions WHERE run_id = ANY($1::uuid[])',
  row: {},
});

/** Marks the position up to which the events of these runs are deleted, and detaches the blobs of their executions. */
export async function deleteExecutionDetail(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(markEvents, [runIds]);
  await tx.query(deleteHeldActions, [runIds]);
  const executions = await tx.query(forgetBlobs, [runIds]);
  return { blobKeys: executions.flatMap(({ keys }) => keys.filter((key) => key !== null)), isDone: true };
}
