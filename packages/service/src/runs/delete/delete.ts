import { terminalStates } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import { isRunTypeCancellable, type RunKind } from '../../executions/cancel/cancel.ts';
import type { Engine } from '../../executions/engine.ts';
import { endWait } from '../../executions/idle/idle.ts';
import type { Queryable } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** `not_found` 404; `not_ended` 409: cancel it first, where that can be; `sandbox_running` 409: its sandbox, or a run below it, is still being closed. */
export type DeleteRunOutcome =
  | { readonly kind: 'deleted'; readonly blobKeys: readonly string[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'not_ended'; readonly state: RunState; readonly canBeCancelled: boolean }
  | { readonly kind: 'sandbox_running' };

/** What must hold of a row `r` of `runs` before it may go: nothing writes to the run any more, no sandbox is left of it, and its cancel has reached all runs below it. */
export const isDeletable = `r.state IN (${terminalStates.map((state) => `'${state}'`).join(', ')})
  AND r.cascade_at IS NULL
  AND NOT EXISTS (SELECT FROM executions e WHERE e.run_id = r.id AND e.phase <> 'ended')`;

/**
 * Deletes an ended run of the team with everything that is its own; runs that it started stay. A sandbox that waits for a
 * follow-up is told to leave, and is waited for, at most `patienceMs`. The blobs are the caller's to delete after it;
 * those that a crash leaves behind have no row and are swept.
 */
export async function deleteRun(
  engine: Engine,
  teamId: string,
  runId: string,
  patienceMs = 5_000,
): Promise<DeleteRunOutcome> {
  if (!isUuid(runId)) return { kind: 'not_found' };
  const deadline = performance.now() + patienceMs;
  let woken = Promise.withResolvers<void>();
  const stopListening = engine.notices.onRun(runId, () => woken.resolve());
  try {
    for (;;) {
      // Made before the attempt: a notice between it and the wait is not lost.
      woken = Promise.withResolvers<void>();
      const outcome = await tryToDelete(engine, teamId, runId);
      const left = deadline - performance.now();
      if (outcome.kind !== 'sandbox_running' || left <= 0) return outcome;
      const timer = setTimeout(woken.resolve, left);
      await woken.promise;
      clearTimeout(timer);
    }
  } finally {
    stopListening();
  }
}

async function tryToDelete(engine: Engine, teamId: string, runId: string): Promise<DeleteRunOutcome> {
  return await engine.db.transaction(async (tx) => {
    const [run] = await tx.query<{ state: RunState } & RunKind>(
      'SELECT state, worker_host, execution_location, source FROM runs WHERE id = $1 AND team_id = $2 FOR UPDATE',
      [runId, teamId],
    );
    if (!run) return { kind: 'not_found' };
    if (!(terminalStates as readonly RunState[]).includes(run.state))
      return { kind: 'not_ended', state: run.state, canBeCancelled: isRunTypeCancellable(run) };
    // A statement of its own: it must see what others committed before the lock was given.
    const deletable = await tx.query(`SELECT FROM runs r WHERE r.id = $1 AND ${isDeletable}`, [runId]);
    if (deletable.length === 1) return { kind: 'deleted', blobKeys: await deleteLockedRuns(tx, [runId]) };
    await endWait(tx, runId, engine.timing.leaveSeconds);
    return { kind: 'sandbox_running' };
  });
}

/** Deletes runs whose rows the transaction has locked and checked, and gives the keys of their blobs. */
export async function deleteLockedRuns(tx: Queryable, runIds: readonly string[]): Promise<string[]> {
  const blobs = await tx.query<{ key: string }>(
    `SELECT blob_key AS key FROM attachments WHERE run_id = ANY($1::uuid[])
     UNION SELECT blob_key FROM artifacts WHERE run_id = ANY($1::uuid[]) AND blob_key IS NOT NULL
     UNION SELECT transcript_blob FROM executions WHERE run_id = ANY($1::uuid[]) AND transcript_blob IS NOT NULL
     UNION SELECT f.blob_key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
       WHERE s.run_id = ANY($1::uuid[]) AND f.blob_key IS NOT NULL
     UNION SELECT workspace_blob FROM executions WHERE run_id = ANY($1::uuid[]) AND workspace_blob IS NOT NULL
     UNION SELECT memory_blob FROM executions WHERE run_id = ANY($1::uuid[]) AND memory_blob IS NOT NULL`,
    [runIds],
  );
  await tx.query('DELETE FROM runs WHERE id = ANY($1::uuid[])', [runIds]);
  return blobs.map(({ key }) => key);
}
