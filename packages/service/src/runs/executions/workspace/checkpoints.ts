/** Checkpoints of the workspace in the middle of a turn. The caller of the functions that write holds the lock of the run's row. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';

const begin = defineStatement({
  name: 'begin_checkpoint',
  text: `
    UPDATE executions e SET checkpoint = $2, checkpoint_done = $3, checkpoint_seq = (SELECT event_seq FROM runs WHERE id = e.run_id)
    WHERE e.id = $1`,
  row: {},
});

/**
 * Records the place in the conversation that fits the files that the agent archives from now on. `done`: commands of a runbook that
 * were done.
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

/** Moves the stored archive to the new checkpoint: no file has changed since it was made. */
export async function keepUnchangedCheckpoint(
  tx: Queryable,
  { executionId, number, turn }: { readonly executionId: string; readonly number: number; readonly turn: number },
): Promise<void> {
  await tx.query(keepUnchanged, [executionId, number, turn]);
}

const readCheckpoint = defineStatement({
  name: 'read_checkpoint',
  text: `
    SELECT coalesce(e.checkpoint = $2 AND r.config->>'on_worker_loss' = 'resume', false) AS is_begun,
      coalesce(e.workspace_is_checkpoint AND e.workspace_at > clock_timestamp() - make_interval(secs => $3::float8), false) AS is_early
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: { is_begun: boolean, is_early: boolean },
});

/**
 * Tells whether the archive of a checkpoint may be sent. `unknown`: the run does not resume, or the checkpoint was not begun; `early`:
 * less than `leastSeconds` ago another one was kept.
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
