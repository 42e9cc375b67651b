/**
 * Records the state that the run's next sandbox restores: archives of the folders workspace and home, checkpoints in the middle of a turn,
 * and the memory of the harness.
 */

import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, text } from '../../platform/store/database/statement.ts';

/** The stored archive of workspace and home. */
export interface WorkspaceArchive {
  readonly key: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
  /** Session of the harness, if the harness can load one in another sandbox. */
  readonly sessionId?: string | undefined;
}

/** Says at which point of the execution an archive was made. */
export interface ArchiveMoment {
  readonly turn: number;
  /** Number of the checkpoint in the middle of the turn; undefined: the archive was made at the end of the turn. */
  readonly checkpoint?: number | undefined;
}

/**
 * Stores the archive of this execution, and does not delete the archive with which this execution began. The next execution may begin with
 * either of them.
 */
const setAndForget = defineStatement({
  name: 'set_workspace_archive',
  text: `
    WITH own AS (
      UPDATE executions e SET workspace_turn = $2, workspace_blob = $3, workspace_bytes = $4, workspace_sha256 = $5, workspace_session = $6,
        workspace_at = clock_timestamp(), workspace_is_checkpoint = $7::int IS NOT NULL,
        workspace_seq = CASE WHEN $7::int IS NULL THEN (SELECT event_seq FROM runs WHERE id = e.run_id) ELSE e.checkpoint_seq END,
        workspace_done = CASE WHEN $7::int IS NULL THEN 0 ELSE e.checkpoint_done END
      FROM executions before
      WHERE e.id = $1 AND before.id = $1 AND coalesce(e.workspace_turn, 0) <= $2 
        AND ($7::int IS NULL OR e.checkpoint = $7 AND (e.workspace_turn IS DISTINCT FROM $2 OR e.workspace_is_checkpoint))
      RETURNING e.run_id, coalesce(e.resumes, e.continues) AS continues, before.workspace_blob AS blob
    ), needless AS (
      SELECT o.id, o.workspace_blob AS blob FROM executions o JOIN own ON o.run_id = own.run_id
      WHERE o.workspace_turn IS NOT NULL AND o.number < (
        SELECT max(p.number) FROM executions p
        WHERE p.run_id = own.run_id AND p.number <= own.continues AND p.workspace_turn IS NOT NULL)
      FOR UPDATE OF o
    ), forgotten AS (
      UPDATE executions o SET workspace_turn = NULL, workspace_blob = NULL, workspace_bytes = NULL, workspace_sha256 = NULL,
        workspace_session = NULL
      FROM needless WHERE o.id = needless.id RETURNING needless.blob
    )
    SELECT blob FROM own UNION ALL SELECT blob FROM forgotten`,
  row: { blob: nullable(text()) },
});

/**
 * Sets the archive that the execution saved after the turn, or at a checkpoint (null: workspace and home were empty), and removes archives
 * of the run that no later execution needs. Returns the keys of the blobs that no row names any more. Changes nothing and returns null if
 * the execution already has a newer archive, or has begun a checkpoint with another number.
 */
export async function setWorkspaceArchive(
  tx: Queryable,
  executionId: string,
  { turn, checkpoint }: ArchiveMoment,
  archive: WorkspaceArchive | null,
): Promise<string[] | null> {
  const rows = await tx.query(setAndForget, [
    executionId,
    turn,
    archive?.key ?? null,
    archive?.sizeBytes ?? null,
    archive?.sha256 ?? null,
    archive?.sessionId ?? null,
    checkpoint ?? null,
  ]);
  return rows.length === 0 ? null : rows.flatMap(({ blob }) => blob ?? []);
}

// The caller of the functions that write checkpoints holds the lock of the run's row.

const begin = defineStatement({
  name: 'begin_checkpoint',
  text: `
    UPDATE executions e SET checkpoint = $2, checkpoint_done = $3, checkpoint_seq = (SELECT event_seq FROM runs WHERE id = e.run_id)
    WHERE e.id = $1`,
  row: {},
});

/**
 * Records the present position in the conversation for the agent's next archive. `done`: number of runbook commands that are complete.
 */
export async function beginCheckpoint(
  tx: Queryable,
  { executionId, number, done }: { readonly executionId: string; readonly number: number; readonly done: number },
): Promise<void> {
  await tx.query(begin, [executionId, number, done]);
}

const keepUnchanged = defineStatement({
  name: 'keep_unchanged_checkpoint',
  text: `
    UPDATE executions SET workspace_turn = $3, workspace_seq = checkpoint_seq, workspace_done = checkpoint_done,
      workspace_is_checkpoint = true, workspace_at = clock_timestamp()
    WHERE id = $1 AND checkpoint = $2 AND workspace_turn <= $3 AND (workspace_turn < $3 OR workspace_is_checkpoint)`,
  row: {},
});

/** Records that the stored archive also belongs to the new checkpoint, because no file has changed since the archive was made. */
export async function keepUnchangedCheckpoint(
  tx: Queryable,
  { executionId, number, turn }: { readonly executionId: string; readonly number: number; readonly turn: number },
): Promise<void> {
  await tx.query(keepUnchanged, [executionId, number, turn]);
}

const readCheckpoint = defineStatement({
  name: 'read_checkpoint',
  text: `
    SELECT coalesce(e.checkpoint = $2 AND q.config->>'on_worker_loss' = 'resume', false) AS is_begun,
      coalesce(e.workspace_is_checkpoint AND e.workspace_at > clock_timestamp() - make_interval(secs => $3::float8), false) AS is_early
    FROM executions e JOIN run_requests q ON q.run_id = e.run_id WHERE e.id = $1`,
  row: { is_begun: boolean, is_early: boolean },
});

/**
 * Returns whether the agent may send the archive of a checkpoint. `unknown`: `on_worker_loss` of the run is not `resume`, or the checkpoint
 * was not begun; `early`: another checkpoint was stored less than `leastSeconds` seconds ago.
 */
export async function admitCheckpoint(
  db: Queryable,
  {
    executionId,
    number,
    leastSeconds,
  }: { readonly executionId: string; readonly number: number; readonly leastSeconds: number },
): Promise<'admitted' | 'unknown' | 'early'> {
  const [row] = await db.query(readCheckpoint, [executionId, number, leastSeconds]);
  if (!row?.is_begun) return 'unknown';
  return row.is_early ? 'early' : 'admitted';
}

const recordBlob = defineStatement({
  name: 'record_memory_blob',
  text: `
    UPDATE executions e SET memory_blob = $2, memory_turn = $3, memory_request = $4, memory_bytes = $5 FROM executions before
    WHERE e.id = $1 AND before.id = $1 AND coalesce(e.memory_turn, 0) <= $3
    RETURNING before.memory_blob`,
  row: { memory_blob: nullable(text()) },
});

/** A harness's memory of the conversation, stored as a blob. */
interface StoredMemory {
  readonly executionId: string;
  readonly blobKey: string;
  readonly sizeBytes: number;
  readonly turn: number;
  /** Id of the request to a person before which the memory was saved; undefined: the memory was saved at the end of the turn. */
  readonly requestId: string | undefined;
}

/**
 * Records the memory as the execution's latest memory. Does nothing if the memory of a later turn is already recorded. Returns the key of
 * the blob to delete: the previous blob, or the given blob if it was not recorded. Returns null if there is nothing to delete.
 */
export async function recordMemory(tx: Queryable, memory: StoredMemory): Promise<string | null> {
  const { executionId, blobKey, sizeBytes, turn, requestId } = memory;
  const [previous] = await tx.query(recordBlob, [executionId, blobKey, turn, requestId ?? null, sizeBytes]);
  return previous ? previous.memory_blob : blobKey;
}
