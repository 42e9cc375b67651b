import type { RunState } from '@runyard/contract/states';
import type { Statement } from '../../store/database/database.ts';
import type { Engine } from '../engine.ts';
import { type Attempt, lockWorkingAttempt } from '../run-tokens/attempt.ts';
import { cancelDescendants } from './cancel-descendants.ts';
import { cancelLocked, type LockedCancelOutcome } from './cancel-locked.ts';

/**
 * `cancelled` 200; `already_ended` 400; `pending` 409, retryable, lasts 30 s at most; `not_supported` 422, self-hosted
 * and local runs; `not_found` 404.
 */
export type CancelOutcome = LockedCancelOutcome | 'not_supported' | 'not_found';

/** The time of the cancel is read when the lock is held: a child that was created before it is older. */
const lockCancellable: Statement = {
  name: 'lock_cancellable',
  text: 'SELECT state, current_execution_id, worker_host, execution_location, source FROM runs WHERE id = $1 FOR UPDATE',
};

/** Columns of a run that say whether its kind can be cancelled. */
export interface RunKind {
  readonly worker_host: string | null;
  readonly execution_location: string;
  readonly source: string;
}

interface CancellableRow extends RunKind {
  readonly state: RunState;
  readonly current_execution_id: string;
}

/** True for the kinds of runs that can be cancelled: hosted ones, not started by a GitHub Action. */
export function isRunTypeCancellable(run: RunKind): boolean {
  return run.worker_host === null && run.execution_location === 'REMOTE' && run.source !== 'GITHUB_ACTION';
}

/**
 * Cancels the run in the record at once, and after it the live runs below it; sandboxes are ended within 5 s, or by the
 * reconciler where their worker is gone. `by` an agent of the run above it: also a kind of run that people cannot cancel; throws `AttemptOver`.
 */
export async function cancelRun(
  engine: Engine,
  runId: string,
  by: 'person' | Attempt = 'person',
): Promise<CancelOutcome> {
  const outcome = await engine.db.transaction(async (tx): Promise<CancelOutcome> => {
    if (by !== 'person') await lockWorkingAttempt(tx, by, [runId]);
    const [run] = await tx.query<CancellableRow>(lockCancellable, [runId]);
    if (!run) return 'not_found';
    if (by === 'person' && !isRunTypeCancellable(run)) return 'not_supported';
    const { state, current_execution_id: executionId } = run;
    return await cancelLocked(engine, tx, { runId, executionId, state, cascades: true });
  });
  if (outcome === 'cancelled') {
    await cancelDescendants(engine, runId).catch((error: unknown) =>
      engine.log.error({ err: error, run: runId }, 'cancelling the runs below a run failed; the reconciler goes on'),
    );
  }
  return outcome;
}
