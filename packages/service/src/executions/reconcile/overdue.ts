/**
 * What time ran out for. A sweep finds candidates without a lock; here each is decided under the lock of its run's row, which comes
 * before that of its execution as everywhere, and with the times as they are then: a deadline may have been put off meanwhile.
 */

import type { Queryable, Statement } from '../../store/database/database.ts';
import { queueChannel } from '../channels.ts';
import { expireDebugTurn } from '../debug-window/setup-window.ts';
import type { Engine } from '../engine.ts';
import { outageSeconds } from '../lease/heartbeat.ts';
import { appendTimelineEvent } from '../timeline/append.ts';
import { workingPhases } from '../transitions/phases.ts';
import type { Phase } from '../transitions/transition.ts';
import { expireRun, expireSetup, requeue } from '../transitions/transitions.ts';

/** An execution that a sweep found. */
export interface Candidate {
  readonly run_id: string;
  readonly execution_id: string;
}

const lockRun: Statement = { name: 'lock_run_of_candidate', text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE' };

/** Calls `decide` in a transaction that has locked the run's row. */
async function underLock(engine: Engine, run: Candidate, decide: (tx: Queryable) => Promise<unknown>): Promise<void> {
  await engine.db.transaction(async (tx) => {
    await tx.query(lockRun, [run.run_id]);
    await decide(tx);
  });
}

/** SQL: the assignment of the execution `e` was not claimed in time. */
export const isUnclaimed = (e: string): string => `${e}.phase = 'assigned' AND ${e}.claim_deadline < clock_timestamp()`;

const readUnclaimed: Statement = {
  name: 'read_unclaimed',
  text: `SELECT FROM executions e WHERE e.id = $1 AND ${isUnclaimed('e')}`,
};

/** Takes back an assignment that was not claimed in time. */
export async function takeBack(
  engine: Engine,
  assigned: Candidate & { readonly assignment_id: string },
): Promise<void> {
  const { run_id: runId, execution_id: executionId, assignment_id } = assigned;
  await underLock(engine, assigned, async (tx) => {
    if ((await tx.query(readUnclaimed, [executionId])).length === 0) return;
    await requeue(tx, { runId, executionId, args: { assignment_id } });
  });
}

/** SQL: the deadline of the execution `e` has passed. */
export const isOverdue = (e: string): string =>
  `${e}.phase IN ${workingPhases} AND ${e}.deadline_at < clock_timestamp()`;

const readOverdue: Statement = {
  name: 'read_overdue',
  text: `SELECT e.phase FROM executions e WHERE e.id = $1 AND ${isOverdue('e')}`,
};

/** Ends a setup, a run or a turn in the sandbox of a failed setup whose deadline has passed. */
export async function endOverdue(engine: Engine, overdue: Candidate): Promise<void> {
  const { run_id: runId, execution_id: executionId } = overdue;
  await underLock(engine, overdue, async (tx) => {
    const [execution] = await tx.query<{ phase: Phase }>(readOverdue, [executionId]);
    if (!execution) return;
    await expireDebugTurn(engine, tx, executionId);
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
      args: { stop_seconds: engine.timing.cancelGraceSeconds },
    });
  });
}

/**
 * SQL: the lease of the execution `e` is over. Not while the last sign of life of any service process is old: nobody could renew a
 * lease, and the next one extends them all. `silentSeconds`: the parameter with `outageSeconds`.
 */
export const isLeaseOver = (e: string, silentSeconds: string): string => `(${e}.lease_until < clock_timestamp()
  AND coalesce((SELECT max(seen_at) FROM service_instances), 'infinity') > clock_timestamp() - make_interval(secs => ${silentSeconds}::float8))`;

/** SQL: the end of the execution `e` was decided, and the worker of its sandbox went silent: its lease was not renewed since. */
export const isAbandoned = (e: string, silentSeconds: string): string => `${e}.phase = 'stopping'
  AND ${e}.stop_deadline < clock_timestamp()
  AND (${isLeaseOver(e, silentSeconds)} OR ${e}.stop_deadline < clock_timestamp() - interval '10 minutes')`;

const endIt: Statement = {
  name: 'end_abandoned',
  text: `
    UPDATE executions e SET phase = 'ended', ended_at = clock_timestamp()
    WHERE e.id = $1 AND ${isAbandoned('e', '$2')} RETURNING pg_notify('${queueChannel}', e.pool)`,
};

/** Ends an execution whose sandbox nobody will tell of any more. */
export async function endAbandoned(engine: Engine, abandoned: Candidate): Promise<void> {
  const { run_id: runId, execution_id: executionId } = abandoned;
  await underLock(engine, abandoned, async (tx) => {
    if ((await tx.query(endIt, [executionId, outageSeconds(engine.timing)])).length === 0) return;
    const payload = { kind: 'lost', message: 'Its worker was lost.' };
    await appendTimelineEvent(tx, { runId, executionId, type: 'vm_shutdown', payload });
  });
}
