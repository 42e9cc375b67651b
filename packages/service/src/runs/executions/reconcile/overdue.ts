/**
 * Ends executions whose deadline has passed. A sweep finds these executions without a lock. The functions of this file check each of them
 * again under the lock of the run's row, because the deadline may have been extended meanwhile. They lock the row of the run before the row
 * of the execution.
 */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, float, json, nullable, text } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import { expireDebugTurn } from '../idle/debug-window.ts';
import { outageSeconds } from '../lease/heartbeat.ts';
import { tellQueueOfFreed } from '../notices.ts';
import { type Phase, workingPhases } from '../phases.ts';
import { allowedSeconds, workedSeconds } from '../time.ts';
import { appendShutdown } from '../timeline/timeline.ts';
import { exceedBudget, expireRun, expireSetup } from '../transitions/transitions.ts';

/** An execution that a sweep found. */
export interface Candidate {
  readonly run_id: string;
  readonly execution_id: string;
}

const lockRun = defineStatement({
  name: 'lock_run_of_candidate',
  text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE',
  row: {},
});

/** Calls `decide` in a transaction that has locked the run's row. */
async function underLock(
  deps: ExecutionDeps,
  run: Candidate,
  decide: (tx: Queryable) => Promise<unknown>,
): Promise<void> {
  await deps.db.transaction(async (tx) => {
    await tx.query(lockRun, [run.run_id]);
    await decide(tx);
  });
}

/** SQL: the deadline of the execution `e` has passed. */
export const isOverdue = (e: string): string =>
  `${e}.is_live AND ${e}.phase IN ${workingPhases} AND ${e}.deadline_at < clock_timestamp()`;

const readOverdue = defineStatement({
  name: 'read_overdue',
  text: `SELECT e.phase, ${allowedSeconds('e.run_id')} / 60 AS allowed_minutes,
      ${workedSeconds('e.run_id')} >= ${allowedSeconds('e.run_id')} AS is_over_budget
    FROM executions e WHERE e.id = $1 AND ${isOverdue('e')}`,
  row: { phase: text<Phase>(), allowed_minutes: nullable(float), is_over_budget: nullable(boolean) },
});

/** Ends a setup, a run, or a turn in the debug window whose deadline has passed. */
export async function endOverdue(deps: ExecutionDeps, overdue: Candidate): Promise<void> {
  const { run_id: runId, execution_id: executionId } = overdue;
  await underLock(deps, overdue, async (tx) => {
    const [execution] = await tx.query(readOverdue, [executionId]);
    if (!execution) return;
    await expireDebugTurn(deps, tx, executionId);
    const stop_seconds = deps.timing.cancelGraceSeconds;
    if (execution.phase === 'running' && execution.is_over_budget) {
      const message = `The run has worked for its max_duration_minutes of ${execution.allowed_minutes}, and it was ended. Create a run with a higher limit.`;
      await exceedBudget(tx, {
        runId,
        executionId,
        status: { message, code: 'budget_exceeded', retryable: false },
        payload: { message, error_code: 'budget_exceeded' },
        args: { stop_seconds },
      });
      return;
    }
    const isSetup = execution.phase === 'claimed';
    const what = isSetup
      ? 'Setting up the sandbox took longer than the team allows'
      : 'The run passed its maximum runtime';
    const message = `${what}, and it was ended. Split the work, or have an administrator raise the limit.`;
    await (isSetup ? expireSetup : expireRun)(tx, {
      runId,
      executionId,
      status: { message, code: 'infrastructure_timeout', retryable: false },
      payload: { message, error_code: 'infrastructure_timeout' },
      args: { stop_seconds },
    });
  });
}

/**
 * SQL: the lease of the execution `e` is over. The condition is false during an outage of all service processes, because then no lease
 * could be renewed; the next heartbeat extends all leases. `silentSeconds` is the SQL parameter with the value of `outageSeconds`.
 */
export const isLeaseOver = (e: string, silentSeconds: string): string => `(${e}.lease_until < clock_timestamp()
  AND coalesce((SELECT max(seen_at) FROM service_instances), 'infinity') > clock_timestamp() - make_interval(secs => ${silentSeconds}::float8))`;

/**
 * SQL: the execution `e` was asked to end, its stop deadline has passed, and nobody will report the end of its sandbox. The last
 * condition holds if the lease is over, or if the deadline passed 10 minutes ago.
 */
export const isAbandoned = (e: string, silentSeconds: string): string => `${e}.is_live AND ${e}.phase = 'stopping'
  AND ${e}.stop_deadline < clock_timestamp()
  AND (${isLeaseOver(e, silentSeconds)} OR ${e}.stop_deadline < clock_timestamp() - interval '10 minutes')`;

const endAbandonedExecution = defineStatement({
  name: 'end_abandoned',
  text: `
    UPDATE executions e SET phase = 'ended', ended_at = clock_timestamp()
    WHERE e.id = $1 AND ${isAbandoned('e', '$2')} RETURNING e.exit, ${tellQueueOfFreed('e')}`,
  row: { exit: nullable(json<Record<string, unknown>>()) },
});

/** Ends an execution whose worker will not report the end of the sandbox. */
export async function endAbandoned(deps: ExecutionDeps, abandoned: Candidate): Promise<void> {
  const { run_id: runId, execution_id: executionId } = abandoned;
  await underLock(deps, abandoned, async (tx) => {
    const [ended] = await tx.query(endAbandonedExecution, [executionId, outageSeconds(deps.timing)]);
    if (!ended) return;
    const payload = ended.exit ?? { kind: 'lost', message: 'Its worker was lost.' };
    await appendShutdown(tx, { runId, executionId, payload });
  });
}
