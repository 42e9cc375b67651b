import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import type { ExecutionTiming } from '../deps.ts';
import { type Attempt, lockAttempt } from '../run-tokens/attempt.ts';
import { claim } from '../transitions/transitions.ts';

const readAssignment = defineStatement({
  name: 'read_assignment_of_attempt',
  text: `
    SELECT r.assignment_id AS "assignmentId", e.worker_id AS "workerId"
    FROM executions e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
    WHERE e.id = $1 AND e.phase = 'assigned' AND r.assignment_id IS NOT NULL`,
  row: { assignmentId: uuid, workerId: text() },
});

/**
 * PENDING → CLAIMED for an agent that asks for its task before its worker's claim arrived, because the worker starts the sandbox
 * without waiting for the service. An agent does nothing before it has its task, so an assignment that is taken back has done nothing
 * either: of two sandboxes of an execution, only one ever works. Throws `AttemptOver`.
 */
export async function claimForAgent(
  { db, timing }: { readonly db: Database; readonly timing: Pick<ExecutionTiming, 'leaseSeconds'> },
  attempt: Attempt,
): Promise<void> {
  const { runId, executionId } = attempt;
  await db.transaction(async (tx) => {
    await lockAttempt(tx, attempt);
    const [assignment] = await tx.query(readAssignment, [executionId]);
    if (!assignment) return;
    const args = { assignment_id: assignment.assignmentId, lease_seconds: timing.leaseSeconds };
    await claim(tx, { runId, executionId, args, payload: { worker_id: assignment.workerId } });
  });
}
