/**
 * Finishes work that a crashed process left behind. Each sweep finds the executions that need a change, and changes each of them with the
 * same conditional statements as in normal operation. Any number of processes may sweep at once.
 */
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  type Statement,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { eachAlone } from '../../../platform/store/database/sweep.ts';
import { findCascades, finishCascades } from '../cancel/cancel-descendants.ts';
import type { ExecutionDeps } from '../deps.ts';
import { leaveIdle, overIdle } from '../idle/idle.ts';
import { outageSeconds } from '../lease/heartbeat.ts';
import { livePhases } from '../phases.ts';
import { expireQueued } from '../transitions/transitions.ts';
import { type Candidate, endAbandoned, endOverdue, isAbandoned, isLeaseOver, isOverdue } from './overdue.ts';
import { endSandbox } from './sandbox-end.ts';
import { isUnclaimed, takeBack } from './take-back.ts';

const sweepLimit = 200;

const unclaimed = defineStatement({
  name: 'find_unclaimed',
  text: `
    SELECT r.id AS run_id, e.id AS execution_id, r.assignment_id
    FROM executions e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
    WHERE ${isUnclaimed('e')} AND r.assignment_id IS NOT NULL LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid, assignment_id: uuid },
});

const lost = defineStatement({
  name: 'find_lost',
  text: `
    SELECT e.run_id, e.id AS execution_id, e.worker_id, e.agent_seen_at IS NULL AS never_called,
      e.worker_instance IS NULL AND EXISTS (SELECT FROM worker_connections c WHERE c.id = e.connection_id) AS is_silent
    FROM executions e WHERE e.is_live AND e.phase IN ${livePhases} AND ${isLeaseOver('e', '$1')} LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid, worker_id: nullable(text()), never_called: boolean, is_silent: boolean },
});

const overdue = defineStatement({
  name: 'find_overdue',
  text: `SELECT e.run_id, e.id AS execution_id FROM executions e WHERE ${isOverdue('e')} LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid },
});

const waitedTooLong = defineStatement({
  name: 'find_waited_too_long',
  text: `
    SELECT e.run_id, e.id AS execution_id, e.pool, t.queue_ttl_hours AS hours
    FROM executions e JOIN teams t ON t.id = e.team_id
    WHERE e.is_queued AND NOT e.waits_for_place AND e.queued_at < clock_timestamp() - make_interval(hours => t.queue_ttl_hours) LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid, pool: text(), hours: integer },
});

const abandoned = defineStatement({
  name: 'find_abandoned',
  text: `SELECT e.run_id, e.id AS execution_id FROM executions e WHERE ${isAbandoned('e', '$1')} LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid },
});

/**
 * Finds an execution whose lease or stop deadline has passed. `reconcile` decides whether to end the execution: during an outage of all
 * service processes, `reconcile` ends none.
 */
const pastLeases = defineStatement({
  name: 'find_past_leases',
  text: `
    SELECT FROM executions e WHERE e.is_live AND ((e.phase IN ${livePhases} AND e.lease_until < clock_timestamp())
      OR (e.phase = 'stopping' AND e.stop_deadline < clock_timestamp())) LIMIT 1`,
  row: {},
});

/** If `reconcile` has work, at least one of these statements returns a row. */
export const reconcilable: readonly Statement[] = [unclaimed, overdue, pastLeases, findCascades, overIdle];

/** Sweeps once over all executions whose deadline or lease has passed. */
export async function reconcile(deps: ExecutionDeps): Promise<void> {
  const { db, timing } = deps;
  const onFailure = ({ run_id, execution_id }: Candidate, error: unknown) =>
    deps.log.error({ err: error, run_id, execution_id }, 'an execution is reconciled again later');
  const silence = [outageSeconds(timing)];
  await eachAlone(
    await db.query(unclaimed, []),
    ({ run_id, execution_id, assignment_id }) =>
      takeBack(deps, { runId: run_id, executionId: execution_id, assignmentId: assignment_id }, 'late'),
    onFailure,
  );
  await eachAlone(await db.query(lost, silence), (row) => endLost(deps, row), onFailure);
  await eachAlone(await db.query(overdue, []), (row) => endOverdue(deps, row), onFailure);
  await finishCascades(deps);
  await leaveIdle(deps);
  await eachAlone(await db.query(abandoned, silence), (row) => endAbandoned(deps, row), onFailure);
}

/**
 * Ends an execution whose lease has expired. `is_silent`: the agent of a public worker sends nothing, but the worker is connected, so the
 * sandbox may still run. `is_silent` is false for Runyard's own worker: a row of the worker's connection does not prove that the worker
 * is connected, because the service process may have died together with the worker.
 */
async function endLost(deps: ExecutionDeps, row: RowOf<typeof lost>): Promise<void> {
  const worker = row.worker_id ?? 'unknown';
  if (!row.is_silent) {
    const message = `Worker ${worker} was lost: neither the worker nor the agent sent anything during the lease. Look at the worker's log.`;
    await endSandbox(deps, row.execution_id, { kind: 'silent', message });
    return;
  }
  const { agentStartSeconds, silentAgentSeconds } = deps.timing;
  const what = row.never_called
    ? `no agent called the service within ${agentStartSeconds / 60} min after worker ${worker} claimed the run`
    : `the agent sent nothing for ${silentAgentSeconds / 60} min, although worker ${worker} is connected`;
  await endSandbox(deps, row.execution_id, {
    kind: 'silent',
    message: `The sandbox was lost: ${what}. Look at the worker's log, and at the program that its dispatch command started.`,
    remains: 'unproven',
  });
}

/** Ends runs that were queued for longer than their team allows. This function reads the whole queue, so call it at most once a minute. */
export async function expireWaiting({ db }: ExecutionDeps): Promise<void> {
  for (const row of await db.query(waitedTooLong, [])) {
    const pool = row.pool === '' ? 'the hosted pool' : `worker ${row.pool}`;
    const message = `No free place at ${pool} for ${row.hours} h. Start a worker, or more workers, and start the run again.`;
    await expireQueued(db, {
      runId: row.run_id,
      executionId: row.execution_id,
      status: { message, code: 'resource_unavailable', retryable: true },
      payload: { message, error_code: 'resource_unavailable' },
    });
  }
}
