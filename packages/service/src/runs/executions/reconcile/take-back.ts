/** Takes back assignments that no worker has claimed. */
import { boolean, defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import { claim, requeue } from '../transitions/transitions.ts';
import { endSandboxWithin } from './sandbox-end.ts';

/** SQL: no worker claimed the assignment of the execution `e` in time. */
export const isUnclaimed = (e: string): string =>
  `${e}.is_live AND ${e}.phase = 'assigned' AND ${e}.claim_deadline < clock_timestamp()`;

export interface UnclaimedAssignment {
  readonly runId: string;
  readonly executionId: string;
  readonly assignmentId: string;
}

/** Locks the run of an assignment. Returns no row if the assignment was claimed or taken back. */
const lockAssignment = defineStatement({
  name: 'lock_unclaimed_assignment',
  text: 'SELECT FROM runs WHERE id = $1 AND current_execution_id = $2 AND assignment_id = $3 FOR UPDATE',
  row: {},
});

/** This statement runs separately, after the run's row was locked, so that it sees the present row. */
const readAssigned = defineStatement({
  name: 'read_assigned_execution',
  text: `SELECT e.worker_id, e.worker_instance IS NULL AS is_public, ${isUnclaimed('e')} AS is_late FROM executions e WHERE e.id = $1`,
  row: { worker_id: nullable(text()), is_public: boolean, is_late: nullable(boolean) },
});

/**
 * Takes back an assignment whose claim did not arrive before its deadline (`late`), or before the connection was lost (`lost`). An
 * assignment of Runyard's own worker returns to the queue. A public worker ignores a second assignment with the same `execution_id`. So
 * if a public worker had the assignment, the launch counts as a try, the next try is another execution, and the worker is ordered to end
 * this one.
 */
export async function takeBack(
  deps: ExecutionDeps,
  { runId, executionId, assignmentId }: UnclaimedAssignment,
  reason: 'late' | 'lost',
): Promise<void> {
  await deps.db.transaction(async (tx) => {
    if ((await tx.query(lockAssignment, [runId, executionId, assignmentId])).length === 0) return;
    const [assigned] = await tx.query(readAssigned, [executionId]);
    if (!assigned || (reason === 'late' && !assigned.is_late)) return;
    const args = { assignment_id: assignmentId, lease_seconds: deps.timing.leaseSeconds };
    if (!assigned.is_public) {
      await requeue(tx, { runId, executionId, args });
      return;
    }
    const worker = assigned.worker_id ?? 'unknown';
    await claim(tx, { runId, executionId, args, payload: { worker_id: worker } });
    await endSandboxWithin(deps, tx, executionId, {
      kind: 'lost',
      message: `The run was assigned to worker ${worker}, and the worker's claim did not arrive.`,
      remains: 'unproven',
    });
  });
}
