/** Renews the lease of an execution when its agent calls the service. */

import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { ExecutionTiming } from '../deps.ts';
import { livePhases } from '../phases.ts';
import { type Attempt, isAttempt } from '../run-tokens/attempt.ts';
import { claim } from '../transitions/transitions.ts';

/** Names the parameters of a statement that renews a lease. */
interface RenewalParameters {
  readonly executionId: string;
  readonly leaseSeconds: string;
  readonly tokenHash: string;
}

/**
 * Returns SQL that renews the lease of an execution `e` whose agent has called, and records the time of this call. A `RETURNING` clause
 * can follow. The statement changes no row if the attempt is over.
 */
export const renewLeaseByAgent = ({ executionId, leaseSeconds, tokenHash }: RenewalParameters): string => `
    UPDATE executions e SET agent_seen_at = clock_timestamp(),
      lease_until = CASE WHEN phase IN ${livePhases}
        THEN greatest(lease_until, clock_timestamp() + make_interval(secs => ${leaseSeconds}::float8)) ELSE lease_until END
    WHERE e.id = ${executionId} AND ${isAttempt('e', tokenHash)}`;

/**
 * Changes PENDING to CLAIMED for an agent that asks for its task before the worker's claim has arrived. This order is possible because the
 * worker starts the sandbox without waiting for the service. An agent does nothing before it has its task. So even if an assignment was
 * taken back and given to another sandbox, only one of the two sandboxes works. Changes nothing if the worker's claim has arrived, or if the
 * attempt is over.
 */
export async function claimForAgent(
  { db, timing }: { readonly db: Database; readonly timing: Pick<ExecutionTiming, 'leaseSeconds'> },
  session: Pick<Attempt, 'runId' | 'executionId'> & {
    readonly assignmentId: string | null;
    readonly workerId: string | null;
  },
): Promise<void> {
  const { runId, executionId, assignmentId, workerId } = session;
  // Each assignment has a token of its own, so this changes nothing if the token is not the present one any more.
  const args = { assignment_id: assignmentId, lease_seconds: timing.leaseSeconds };
  await claim(db, { runId, executionId, args, payload: { worker_id: workerId } });
}

/**
 * Maximum delay of the stop deadline, counted from the first upload. Without this maximum, an agent could keep its sandbox by endless
 * uploads.
 */
const maxSeconds = 120;
const stepSeconds = 15;
const everyMs = 5_000;

/** Delays the stop deadline only if the agent exits by itself. After a cancel, the sandbox is killed at its deadline. */
const putOffStop = defineStatement({
  name: 'hold_sandbox',
  text: `
    UPDATE executions e SET
      keeping_until = coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds'),
      stop_deadline = greatest(stop_deadline, least(clock_timestamp() + interval '${stepSeconds} seconds',
        coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds')))
    WHERE e.id = $1 AND ${isAttempt('e', '$2')} AND e.phase = 'stopping' AND e.stop_reason = 'finished'`,
  row: {},
});

/** Delays the end of the attempt's sandbox until `work` is done, for two minutes at most. */
export async function holdSandbox<T>(
  db: Queryable,
  { executionId, tokenHash }: Pick<Attempt, 'executionId' | 'tokenHash'>,
  work: () => Promise<T>,
): Promise<T> {
  const extend = () => db.query(putOffStop, [executionId, tokenHash]).catch(() => {});
  const timer = setInterval(extend, everyMs);
  try {
    await extend();
    return await work();
  } finally {
    clearInterval(timer);
  }
}
