/** Test support: checks conditions that must be true for all runs and executions after any sequence of operations. */
import { expect } from 'vitest';
import { expireWaiting, reconcile } from '../src/runs/executions/reconcile/reconcile.ts';
import type { World } from './execution-operations.ts';
import type { TestExecutions } from './executions.ts';

/** All allowed changes of a run's state. This list was written independently of the transitions in the service, and must agree with them. */
const legal: Record<string, readonly string[]> = {
  QUEUED: ['PENDING', 'CANCELLED', 'ERROR'],
  PENDING: ['CLAIMED', 'QUEUED'],
  CLAIMED: ['INPROGRESS', 'QUEUED', 'FAILED', 'ERROR', 'CANCELLED'],
  INPROGRESS: ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'QUEUED', 'BLOCKED'],
  BLOCKED: ['INPROGRESS', 'QUEUED', 'FAILED', 'ERROR', 'CANCELLED'],
  SUCCEEDED: ['INPROGRESS', 'QUEUED'],
  FAILED: ['QUEUED'],
  ERROR: ['QUEUED'],
  CANCELLED: ['QUEUED'],
};

const phasesOf: Record<string, readonly string[]> = {
  QUEUED: ['queued'],
  PENDING: ['assigned'],
  CLAIMED: ['claimed'],
  INPROGRESS: ['running'],
  BLOCKED: ['idle', 'stopping', 'ended'],
  SUCCEEDED: ['idle', 'stopping', 'ended'],
  // After a failed setup, the sandbox stays for a while so that a person can debug it. During this time, the execution is idle or running.
  FAILED: ['idle', 'running', 'stopping', 'ended'],
  ERROR: ['stopping', 'ended'],
  CANCELLED: ['stopping', 'ended'],
};

const terminalEvents: Record<string, string> = {
  SUCCEEDED: 'oz_run_done',
  FAILED: 'oz_run_failed',
  ERROR: 'oz_run_errored',
  CANCELLED: 'oz_run_cancelled',
  BLOCKED: 'oz_run_blocked',
};

/** Throws if a row breaks an invariant. `limit` is the team's number of slots. */
export async function checkInvariants(
  { deps: executionDeps }: TestExecutions,
  world: World,
  limit: number,
): Promise<void> {
  const { pool } = executionDeps.db;
  const { rows: followups } = await pool.query(`
    SELECT count(*)::int AS kept,
      count(*) FILTER (WHERE f.execution_id IS NULL AND e.phase = 'idle' AND (r.state = 'SUCCEEDED' OR f.is_debug AND e.debug_request IS NULL))::int AS forgotten,
      count(*) FILTER (WHERE f.is_debug AND f.execution_id = e.id AND e.started_at IS NULL AND r.state = 'QUEUED')::int AS debugged_again,
      count(*) FILTER (WHERE f.answers = coalesce(r.open_request, e.debug_request)->>'request_id')::int AS answered_and_open,
      count(f.answers)::int - count(DISTINCT f.answers)::int AS answered_again
    FROM followups f JOIN runs r ON r.id = f.run_id JOIN executions e ON e.id = r.current_execution_id`);
  expect(followups[0], 'every follow-up is stored, no agent is idle while one waits, a request has one answer').toEqual(
    {
      kept: world.followups,
      forgotten: 0,
      debugged_again: 0,
      answered_and_open: 0,
      answered_again: 0,
    },
  );
  const { rows: runs } = await pool.query(`
    SELECT r.id, r.state, r.in_sandbox, r.event_seq, r.open_request->>'request_id' AS asks, e.debug_request->>'request_id' AS debug_asks, e.phase, e.number, e.deadline_at, e.idle_until, e.awaiting_until,
      (SELECT max(number) FROM executions x WHERE x.run_id = r.id) AS newest,
      (SELECT count(*) FROM executions x WHERE x.run_id = r.id) AS executions,
      (SELECT count(*) FROM executions x WHERE x.run_id = r.id AND x.phase IN ('assigned', 'claimed', 'running', 'idle', 'stopping')) AS live,
      (SELECT jsonb_agg(jsonb_build_object('seq', v.seq, 'state', v.state, 'type', v.event_type) ORDER BY v.seq) FROM run_events v WHERE v.run_id = r.id) AS events,
      (SELECT array_agg(s.seq::int ORDER BY s.seq) FROM (SELECT seq FROM run_events WHERE run_id = r.id
        UNION ALL SELECT seq FROM conversation_events WHERE run_id = r.id) s) AS numbers
    FROM runs r JOIN executions e ON e.id = r.current_execution_id`);
  const { rows: taken } = await pool.query(
    // Count only executions for which the limit must hold. An agent that has waited for a follow-up or for other runs may continue even
    // if this exceeds the limit.
    "SELECT count(*) AS n FROM executions WHERE phase IN ('assigned', 'claimed', 'running') AND idle_seconds = 0 AND awaiting_until IS NULL GROUP BY team_id",
  );
  for (const row of taken) expect(Number(row.n)).toBeLessThanOrEqual(limit);
  for (const run of runs) {
    expect(phasesOf[run.state], `state ${run.state} with its execution`).toContain(run.phase);
    expect(run.asks !== null, 'a run has an open request exactly while it is BLOCKED').toBe(run.state === 'BLOCKED');
    if (run.debug_asks !== null) {
      expect(run.state, 'a question in the debug window belongs to a FAILED run').toBe('FAILED');
      expect(run.phase, 'an execution with an open question does not run').not.toBe('running');
    }
    if (run.state === 'BLOCKED') expect(run.deadline_at, 'a BLOCKED run has no deadline').toBeNull();
    if (run.phase === 'running') expect(['INPROGRESS', 'FAILED']).toContain(run.state);
    if (run.phase === 'idle') expect(run.awaiting_until, 'an idle execution does not wait for other runs').toBeNull();
    expect(run.idle_until !== null, 'exactly an idle execution has an end of its wait').toBe(run.phase === 'idle');
    expect(run.in_sandbox, 'a run is in a sandbox exactly while an execution is live').toBe(Number(run.live) > 0);
    expect(run.number, 'the current execution is the newest').toBe(run.newest);
    expect(Number(run.executions), 'executions are numbered without gaps').toBe(run.newest);
    expect(
      Number(run.live),
      'at most one execution has a sandbox, an older one in its last moments only while the newer is queued',
    ).toBeLessThanOrEqual(1);
    const events = run.events as { seq: number; state: string | null; type: string | null }[];
    expect(run.numbers).toEqual(Array.from({ length: Number(run.event_seq) }, (_, index) => index + 1));
    const states = events.flatMap((event) => event.state ?? []);
    expect(states[0]).toBe('QUEUED');
    for (const [index, state] of states.entries()) {
      if (index > 0) expect(legal[states[index - 1] as string], `${states[index - 1]} → ${state}`).toContain(state);
    }
    expect(states.at(-1), 'the log ends in the state of the row').toBe(run.state);
    for (const event of events) {
      if (event.state && terminalEvents[event.state]) expect(event.type).toBe(terminalEvents[event.state]);
    }
  }
}

/** Lets all deadlines pass, and checks that every run then ends, because every wait has a limit. */
export async function letTimePass({ deps: executionDeps }: TestExecutions): Promise<void> {
  const columns = ['claim_deadline', 'lease_until', 'deadline_at', 'stop_deadline', 'queued_at', 'idle_until'];
  const past = columns.map((column) => `${column} = ${column} - interval '2 days'`).join(', ');
  for (let round = 0; round < 12; round += 1) {
    await executionDeps.db.pool.query(`UPDATE executions SET ${past} WHERE phase <> 'ended'`);
    await expireWaiting(executionDeps);
    await reconcile(executionDeps);
  }
  const { rows } = await executionDeps.db.pool.query(`
    SELECT r.state, e.phase FROM runs r JOIN executions e ON e.run_id = r.id
    WHERE r.state NOT IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'BLOCKED') OR e.phase <> 'ended'`);
  expect(rows, 'no run and no execution is stuck').toEqual([]);
}
