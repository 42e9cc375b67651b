import type { RunState } from '@runyard/contract/runs/states';
import { defineStatement, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';

import type { ExecutionDeps } from '../deps.ts';
import { isRunTypeCancellable } from '../run-kind.ts';
import { type Attempt, lockWorkingAttempt } from '../run-tokens/attempt.ts';
import { endInterruptedWait } from '../waiting/interrupted.ts';
import { cancelDescendants } from './cancel-descendants.ts';
import { cancelLocked, type LockedCancelOutcome } from './cancel-locked.ts';

/**
 * `cancelled` 200; `wait_ended` 200, the run had ended with an interrupted turn, and its sandbox ends; `already_ended` 400; `pending` 409, retryable, lasts 30 s at most; `not_supported` 422, self-hosted
 * and local runs; `not_found` 404.
 */
export type CancelOutcome = LockedCancelOutcome | 'wait_ended' | 'not_supported' | 'not_found';

/** The time of the cancel is read when the lock is held: a child that was created before it is older. */
const lockCancellable = defineStatement({
  name: 'lock_cancellable',
  text: 'SELECT state, current_execution_id, worker_host, execution_location, source FROM runs WHERE id = $1 FOR UPDATE',
  row: {
    state: text<RunState>(),
    current_execution_id: uuid,
    worker_host: nullable(text()),
    execution_location: text(),
    source: text(),
  },
});

/**
 * Cancels the run at once, and after it the live runs below it. Their sandboxes end within 5 s; if a worker is gone, the reconciler
 * ends the execution. If the turn was interrupted and the agent waits for a message, only the sandbox ends and the state stays. `by`
 * may be the agent of a run above, which may cancel every kind of run; throws `AttemptOver` then. The audit log names an author.
 */
export async function cancelRun(
  deps: ExecutionDeps,
  runId: string,
  by: 'person' | Author | Attempt = 'person',
): Promise<CancelOutcome> {
  const outcome = await deps.db.transaction(async (tx): Promise<CancelOutcome> => {
    const agent = by !== 'person' && 'runId' in by ? by : undefined;
    if (agent) await lockWorkingAttempt(tx, agent, [runId]);
    const [run] = await tx.query(lockCancellable, [runId]);
    if (!run) return 'not_found';
    if (!agent && !isRunTypeCancellable(run)) return 'not_supported';
    const { state, current_execution_id: executionId } = run;
    const cancelled = (await endInterruptedWait(tx, runId, deps.timing.leaveSeconds))
      ? 'wait_ended'
      : await cancelLocked(deps, tx, { runId, executionId, state, cascades: true });
    const isDone = cancelled === 'wait_ended' || cancelled === 'cancelled';
    if (isDone && by !== 'person' && 'creator' in by)
      await recordChange(tx, by, { action: 'run.cancel', subject: { type: 'run', uid: runId }, endsAccess: true });
    return cancelled;
  });
  if (outcome === 'cancelled') {
    await cancelDescendants(deps, runId).catch((error: unknown) =>
      deps.log.error({ err: error, run: runId }, 'cancelling the runs below a run failed; the reconciler continues'),
    );
  }
  return outcome;
}
