/**
 * Cancels a run whose row is locked, and the descendants of a cancelled run. `runs.cascade_at` is set until all descendants are cancelled,
 * so that any process can finish the cancel. A descendant that a person continued after the cancel is not cancelled.
 */
import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { eachAlone } from '../../../platform/store/database/sweep.ts';
import type { ExecutionDeps } from '../deps.ts';
import { isBelow } from '../descendants.ts';
import { tellReaders } from '../notices.ts';
import type { Status } from '../transitions/transition.ts';
import { cancelBlocked, cancelLive, cancelQueued } from '../transitions/transitions.ts';

/** `already_ended`, `pending`: nothing was changed. A run is PENDING for 30 s at most. */
export type LockedCancelOutcome = 'cancelled' | 'already_ended' | 'pending';

interface LockedRun {
  readonly runId: string;
  readonly executionId: string;
  readonly state: RunState;
  /** Payload of the timeline event. */
  readonly payload?: Record<string, unknown>;
  readonly status?: Status;
  /** True if the descendants are to be cancelled too. */
  readonly cascades?: boolean;
}

/** Cancels a run by its state. The transaction has locked the run's row. */
export async function cancelLocked(deps: ExecutionDeps, tx: Queryable, run: LockedRun): Promise<LockedCancelOutcome> {
  const { state, cascades = false, ...target } = run;
  const args = { stop_seconds: deps.timing.cancelGraceSeconds, cascades };
  switch (state) {
    case 'SUCCEEDED':
    case 'FAILED':
    case 'ERROR':
    case 'CANCELLED':
      return 'already_ended';
    case 'PENDING':
      return 'pending';
    case 'QUEUED':
      await cancelQueued(tx, { ...target, args });
      return 'cancelled';
    case 'CLAIMED':
    case 'INPROGRESS':
      await cancelLive(tx, { ...target, args });
      return 'cancelled';
    case 'BLOCKED':
      await cancelBlocked(tx, { ...target, args });
      return 'cancelled';
  }
}

/** SQL: selects the live descendants `c` of the run `a` whose current execution `e` was requested before `a` was cancelled. */
const doomed = `
  FROM runs a
  JOIN runs c ON ${isBelow('c', 'a')}
  JOIN executions e ON e.id = c.current_execution_id
  WHERE a.id = $1 AND c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED') AND e.wanted_at <= a.cascade_at`;

const findDoomed = defineStatement({
  name: 'find_doomed_descendants',
  text: `SELECT c.id ${doomed} ORDER BY c.id`,
  row: { id: uuid },
});

const lockRun = defineStatement({
  name: 'lock_doomed_run',
  text: 'SELECT state, current_execution_id FROM runs WHERE id = $1 FOR UPDATE',
  row: { state: text<RunState>(), current_execution_id: uuid },
});

/** Checks again, after the lock, whether the run is to be cancelled, because a follow-up may have changed the run before the lock. */
const isDoomed = defineStatement({ name: 'is_doomed', text: `SELECT ${doomed} AND c.id = $2`, row: {} });

/**
 * Clears `cascade_at` when all descendants are cancelled, and notifies requests that wait to delete the run. No run can be added below a
 * cancelled run: the creation of a run locks the rows of its ancestors and checks that none is being cancelled.
 */
const forget = defineStatement({
  name: 'forget_finished_cascade',
  text: `UPDATE runs SET cascade_at = NULL WHERE id = $1 AND cascade_at IS NOT NULL AND NOT EXISTS (SELECT ${doomed})
    RETURNING ${tellReaders('id')}`,
  row: {},
});

async function cancelDoomed(deps: ExecutionDeps, tx: Queryable, ancestorId: string, runId: string): Promise<boolean> {
  const [run] = await tx.query(lockRun, [runId]);
  if (!run || (await tx.query(isDoomed, [ancestorId, runId])).length === 0) return false;
  const outcome = await cancelLocked(deps, tx, {
    runId,
    executionId: run.current_execution_id,
    state: run.state,
    payload: { ancestor_run_id: ancestorId },
    status: { message: `Cancelled together with its ancestor, run ${ancestorId}.` },
  });
  return outcome === 'cancelled';
}

/**
 * Cancels the live descendants of a cancelled run. A PENDING run cannot be cancelled yet. It is PENDING for 30 s at most, and the
 * reconciler cancels it after that.
 */
export async function cancelDescendants(deps: ExecutionDeps, runId: string): Promise<void> {
  const { db } = deps;
  for (const { id } of await db.query(findDoomed, [runId])) {
    await db.transaction((tx) => cancelDoomed(deps, tx, runId, id));
  }
  await db.query(forget, [runId]);
}

const cascadeFromEnded = defineStatement({
  name: 'cascade_from_ended_run',
  text: "UPDATE runs SET cascade_at = clock_timestamp() WHERE id = $1 AND state IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED')",
  row: {},
});

/**
 * Cancels the live descendants of a run that has already ended. A descendant that was continued after this cancel is not cancelled.
 */
export async function cancelBelow(deps: ExecutionDeps, runId: string): Promise<void> {
  await deps.db.transaction(async (tx) => {
    // The time of the cancel is read while the lock is held. So every child that was created before the cancel has an earlier time.
    await tx.query(lockRun, [runId]);
    await tx.query(cascadeFromEnded, [runId]);
  });
  await cancelDescendants(deps, runId);
}

const findCancelledAbove = defineStatement({
  name: 'find_cancelled_above',
  text: `
    SELECT a.id FROM executions e JOIN runs c ON c.id = e.run_id AND c.current_execution_id = e.id JOIN runs a ON a.id = ANY(c.ancestor_ids)
    WHERE e.id = $1 AND e.wanted_at <= a.cascade_at ORDER BY a.cascade_at LIMIT 1`,
  row: { id: uuid },
});

/**
 * Cancels the run if one of its ancestors was cancelled and that cancel has not reached this run yet. So the run ends as CANCELLED even if
 * an error occurred after the cancel of the ancestor. The transaction has locked the run's row. Returns true if the run was cancelled.
 */
export async function followCancel(
  deps: ExecutionDeps,
  tx: Queryable,
  run: { readonly runId: string; readonly executionId: string },
): Promise<boolean> {
  const [above] = await tx.query(findCancelledAbove, [run.executionId]);
  return above !== undefined && (await cancelDoomed(deps, tx, above.id, run.runId));
}

/** Finds cancels that have not reached all descendants yet. */
export const findCascades = defineStatement({
  name: 'find_unfinished_cascades',
  text: 'SELECT id FROM runs WHERE cascade_at IS NOT NULL ORDER BY cascade_at LIMIT 200',
  row: { id: uuid },
});

/** Continues every cancel that has not reached all descendants yet. */
export async function finishCascades(deps: ExecutionDeps): Promise<void> {
  await eachAlone(
    await deps.db.query(findCascades, []),
    ({ id }) => cancelDescendants(deps, id),
    ({ id }, error) => deps.log.error({ err: error, run_id: id }, 'the runs below a cancelled run are cancelled later'),
  );
}
