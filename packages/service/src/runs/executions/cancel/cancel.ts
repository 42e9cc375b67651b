import type { RunState } from '@runyard/contract/runs/states';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { type Author, recordAction, recordChange } from '../../../team/access/audit/record.ts';
import type { ExecutionDeps } from '../deps.ts';
import { endInterruptedWait } from '../idle/idle.ts';
import { tellAgent } from '../notices.ts';
import { type Attempt, lockWorkingAttempt } from '../run-tokens/attempt.ts';
import { appendTimelineEvent } from '../timeline/timeline.ts';
import { cancelDescendants, cancelLocked, type LockedCancelOutcome } from './cancel-descendants.ts';

/**
 * Outcome of a cancel, with its HTTP status:
 * - `cancelled` 200.
 * - `wait_ended` 200: the run had ended with an interrupted turn, and its sandbox ends.
 * - `already_ended` 400.
 * - `pending` 409: a run is PENDING for 30 s at most, so the request can be repeated.
 * - `not_supported` 422: the run is self-hosted or local.
 * - `not_found` 404.
 */
export type CancelOutcome = LockedCancelOutcome | 'wait_ended' | 'not_supported' | 'not_found';

/** The time of the cancel is read while the lock is held. So every child that was created before the cancel has an earlier time. */
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
 * Cancels the run at once, and then its live descendants. Their sandboxes end within 5 s; if a worker does not respond, the reconciler ends
 * its executions. If the run's turn was interrupted and its agent waits for a message, only the sandbox ends, and the run keeps its state.
 * `by` may be the agent of an ancestor run. Such an agent may cancel every kind of run. Throws `AttemptOver` if the attempt of this agent
 * is over. If `by` is an author, the audit log names the author.
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
      : await cancelLocked(deps, tx, { runId, executionId, state, cascades: true, ...payloadOf(by) });
    const isDone = cancelled === 'wait_ended' || cancelled === 'cancelled';
    if (isDone && by !== 'person' && 'creator' in by)
      await recordChange(tx, by, { action: 'run.cancel', subject: { type: 'run', uid: runId }, endsAccess: true });
    return cancelled;
  });
  if (outcome === 'cancelled') {
    await cancelDescendants(deps, runId).catch((error: unknown) =>
      deps.log.error({ err: error, run_id: runId }, 'cancelling the runs below a run failed; the reconciler continues'),
    );
  }
  return outcome;
}

/** Returns the payload of the timeline event: the caller, or the run whose agent cancels. */
const payloadOf = (by: 'person' | Author | Attempt): { payload?: Record<string, unknown> } =>
  by === 'person' ? {} : { payload: 'runId' in by ? { from_run_id: by.runId } : { by: nameOf(by) } };

/** Returns the author as the timeline shows it. */
const nameOf = ({ creator: { kind, uid, displayName } }: Author) => ({
  type: kind,
  uid,
  ...(displayName === undefined ? {} : { display_name: displayName }),
});

/**
 * Also ends the agent's wait for other runs, because the agent's commands are frozen during this wait, and frozen commands cannot end.
 */
const interrupt = defineStatement({
  name: 'interrupt_turn',
  text: `
    UPDATE executions e SET interrupted_turn = e.finished_turns + 1, awaiting_until = NULL FROM runs r, executions before
    WHERE r.id = $1 AND e.id = r.current_execution_id AND r.state IN ('INPROGRESS', 'FAILED') AND e.phase = 'running' AND before.id = e.id
    RETURNING e.id, before.interrupted_turn IS DISTINCT FROM e.interrupted_turn AS is_first, ${tellAgent('e.run_id')}`,
  row: { id: uuid, is_first: boolean },
});

const readAsking = defineStatement({
  name: 'read_whether_run_asks',
  text: `
    SELECT r.state FROM runs r JOIN executions e ON e.id = r.current_execution_id
    WHERE r.id = $1 AND (r.state = 'BLOCKED' OR r.state = 'FAILED' AND e.phase = 'idle' AND e.debug_request IS NOT NULL)`,
  row: { state: text<RunState>() },
});

/**
 * `blocked` 400: the run waits for an answer; `asks` 400: the agent in the debug window waits for an answer; `no_turn` 400: no turn is in
 * progress.
 */
type InterruptOutcome = 'interrupted' | 'blocked' | 'asks' | 'no_turn';

/** Asks the agent to end the turn in progress, and records which person asked. The sandbox stays. */
export async function interruptRun(db: Database, runId: string, by: Author): Promise<InterruptOutcome> {
  return await db.transaction(async (tx) => {
    const [interrupted] = await tx.query(interrupt, [runId]);
    if (!interrupted) return await whyNot(tx, runId);
    const event = { runId, executionId: interrupted.id, payload: { by: nameOf(by) } };
    if (interrupted.is_first) await appendTimelineEvent(tx, { ...event, type: 'turn_interrupted' });
    await recordAction(tx, by, { action: 'run.interrupt', subject: { type: 'run', uid: runId } });
    return 'interrupted';
  });
}

/** Returns the reason why the run has no turn that can be interrupted. */
async function whyNot(tx: Queryable, runId: string): Promise<Exclude<InterruptOutcome, 'interrupted'>> {
  const [asking] = await tx.query(readAsking, [runId]);
  if (!asking) return 'no_turn';
  return asking.state === 'BLOCKED' ? 'blocked' : 'asks';
}

/** Columns of a run that decide whether its kind can be cancelled. */
interface RunKind {
  readonly worker_host: string | null;
  readonly execution_location: string;
  readonly source: string;
}

/** Returns whether people can cancel a run of this kind. They can if the run is hosted and no GitHub Action started it. */
export function isRunTypeCancellable(run: RunKind): boolean {
  return run.worker_host === null && run.execution_location === 'REMOTE' && run.source !== 'GITHUB_ACTION';
}
