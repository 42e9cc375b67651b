/**
 * What nobody does because whoever should have died: each sweep is a read of candidates and, for each, the same
 * compare-and-set that the live path uses. Any number of processes may sweep at once.
 */

import type { Statement } from '../../store/database/database.ts';
import { defineStatement, uuid } from '../../store/database/statement.ts';
import { finishCascades } from '../cancel/cancel-descendants.ts';
import { queueChannel } from '../channels.ts';
import { expireDebugTurn } from '../debug-window/setup-window.ts';
import type { Engine } from '../engine.ts';
import { leaveIdle } from '../idle/idle.ts';
import { outageSeconds } from '../lease/heartbeat.ts';
import { appendTimelineEvent } from '../timeline/append.ts';
import { livePhases } from '../transitions/phases.ts';
import { expireQueued, expireRun, expireSetup, requeue } from '../transitions/transitions.ts';
import { endSandbox } from './sandbox-end.ts';

const sweepLimit = 200;

const unclaimed = defineStatement({
  name: 'find_unclaimed',
  text: `
    SELECT r.id AS run_id, e.id AS execution_id, r.assignment_id
    FROM executions e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
    WHERE e.phase = 'assigned' AND e.claim_deadline < clock_timestamp() AND r.assignment_id IS NOT NULL LIMIT ${sweepLimit}`,
  row: { run_id: uuid, execution_id: uuid, assignment_id: uuid },
});

/** Not while the last sign of life of any service process is old: nobody could renew a lease, and the next one extends them all. */
const leaseIsOver = `(lease_until < clock_timestamp()
  AND coalesce((SELECT max(seen_at) FROM service_instances), 'infinity') > clock_timestamp() - make_interval(secs => $1::float8))`;

const lost: Statement = {
  name: 'find_lost',
  text: `
    SELECT run_id, id AS execution_id, worker_id FROM executions
    WHERE phase IN ${livePhases} AND ${leaseIsOver} LIMIT ${sweepLimit}`,
};

const overdue: Statement = {
  name: 'find_overdue',
  text: `
    SELECT run_id, id AS execution_id, phase FROM executions
    WHERE phase IN ('claimed', 'running') AND deadline_at < clock_timestamp() LIMIT ${sweepLimit}`,
};

const waitedTooLong: Statement = {
  name: 'find_waited_too_long',
  text: `
    SELECT e.run_id, e.id AS execution_id, e.pool, t.queue_ttl_hours AS hours
    FROM executions e JOIN teams t ON t.id = e.team_id
    WHERE e.phase = 'queued' AND e.queued_at < clock_timestamp() - make_interval(hours => t.queue_ttl_hours) LIMIT ${sweepLimit}`,
};

/** A sandbox whose worker went silent after the end was decided: its lease was not renewed since. */
const abandoned: Statement = {
  name: 'end_abandoned',
  text: `
    UPDATE executions SET phase = 'ended', ended_at = clock_timestamp()
    WHERE id IN (SELECT id FROM executions WHERE phase = 'stopping' AND stop_deadline < clock_timestamp()
      AND (${leaseIsOver} OR stop_deadline < clock_timestamp() - interval '10 minutes') LIMIT ${sweepLimit})
      AND phase = 'stopping'
    RETURNING run_id, id AS execution_id, pg_notify('${queueChannel}', pool)`,
};

interface Candidate {
  run_id: string;
  execution_id: string;
}

/** One sweep over everything that time ran out for. */
export async function reconcile(engine: Engine): Promise<void> {
  const { db, timing } = engine;
  for (const row of await db.query(unclaimed, [])) {
    await requeue(db, { runId: row.run_id, executionId: row.execution_id, args: { assignment_id: row.assignment_id } });
  }
  for (const row of await db.query<Candidate & { worker_id: string | null }>(lost, [outageSeconds(timing)])) {
    const worker = row.worker_id ?? 'unknown';
    await endSandbox(engine, row.execution_id, {
      kind: 'silent',
      message: `Worker ${worker} was lost: neither it nor the agent was heard of for the length of the lease. Look at the worker's log.`,
    });
  }
  for (const row of await db.query<Candidate & { phase: string }>(overdue, [])) {
    const what =
      row.phase === 'claimed'
        ? 'Setting up the sandbox took longer than the team allows'
        : 'The run passed its maximum runtime';
    const message = `${what}, and it was ended. Split the work, or have an administrator raise the limit.`;
    const expire = row.phase === 'claimed' ? expireSetup : expireRun;
    await expireDebugTurn(engine, row.execution_id);
    await expire(db, {
      runId: row.run_id,
      executionId: row.execution_id,
      status: { message, code: 'infrastructure_timeout', retryable: false },
      payload: { message, error_code: 'infrastructure_timeout' },
      args: { stop_seconds: timing.cancelGraceSeconds },
    });
  }
  await finishCascades(engine);
  await leaveIdle(engine);
  await db.transaction(async (tx) => {
    for (const row of await tx.query<Candidate>(abandoned, [outageSeconds(timing)])) {
      await appendTimelineEvent(tx, {
        runId: row.run_id,
        executionId: row.execution_id,
        type: 'vm_shutdown',
        payload: { kind: 'lost', message: 'Its worker was lost.' },
      });
    }
  });
}

/** Ends runs that waited in the queue for longer than their team allows, which is hours. It reads the whole queue: once a minute is enough. */
export async function expireWaiting({ db }: Engine): Promise<void> {
  for (const row of await db.query<Candidate & { pool: string; hours: number }>(waitedTooLong, [])) {
    const pool = row.pool === '' ? 'the hosted pool' : `worker ${row.pool}`;
    const message = `No free place at ${pool} for ${row.hours} h. Start a worker, or more of them, and run it again.`;
    await expireQueued(db, {
      runId: row.run_id,
      executionId: row.execution_id,
      status: { message, code: 'resource_unavailable', retryable: true },
      payload: { message, error_code: 'resource_unavailable' },
    });
  }
}
