import type { AgentEventBody } from '@runyard/contract/agent-protocol';
import type { ErrorCode } from '@runyard/contract/errors';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { markAwaiting } from '../run-trees/await-children.ts';
import { dropWorkerConnection, findAssigned } from '../workers/connections.ts';
import { applyAgentEvents } from './agent-events.ts';
import type { Assignment } from './assign.ts';
import { cancelRun } from './cancel.ts';
import { finishRun } from './finish.ts';
import { acceptFollowup } from './followups.ts';
import { evictIdle } from './idle.ts';
import { waitForInbox } from './inbox.ts';
import { expireWaiting, reconcile } from './reconcile.ts';
import { endSandbox } from './sandbox-end.ts';
import { authenticateRunToken } from './sessions.ts';
import { joinFollowups } from './take-followups.ts';
import { openTestEngine, type TestEngine } from './test-engine.ts';
import { claim, requeue } from './transitions.ts';

/** Every change that `completions.md` has, and no other. */
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
  // idle, running: the sandbox of a failed setup, which stays for follow-ups.
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

const limit = 3;

/** One thing that may happen; `pick` chooses among what there is to do it to. */
type Operation =
  | { do: 'create' | 'assign' | 'claim' | 'reject' | 'start' | 'succeed' | 'cancel' | 'drop_connection'; pick: number }
  | { do: 'follow_up' | 'take' | 'join' | 'evict' | 'await' | 'block' | 'approve' | 'deny'; pick: number }
  | { do: 'fail'; pick: number; code: ErrorCode | undefined }
  | { do: 'end_sandbox'; pick: number; kind: 'exited' | 'not_created' | 'lost' }
  | {
      do: 'time_out';
      pick: number;
      column: 'claim_deadline' | 'lease_until' | 'deadline_at' | 'stop_deadline' | 'idle_until' | 'awaiting_until';
    }
  | { do: 'reconcile'; pick: number };

const pick = fc.nat({ max: 1000 });
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), pick }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('assign' as const), pick }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const), pick }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('start' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reject' as const, 'cancel', 'drop_connection'), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('succeed' as const), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('follow_up' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('take' as const, 'join'), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('block' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('approve' as const, 'deny'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('evict' as const, 'await'), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('fail' as const),
      pick,
      code: fc.constantFrom(
        undefined,
        'environment_setup_failed' as const,
        'resource_unavailable',
        'agent_process_failed',
        'internal_error',
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('end_sandbox' as const),
      pick,
      kind: fc.constantFrom('exited' as const, 'not_created', 'lost'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('time_out' as const),
      pick,
      column: fc.constantFrom(
        'claim_deadline' as const,
        'lease_until',
        'deadline_at',
        'stop_deadline',
        'idle_until',
        'awaiting_until',
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('reconcile' as const), pick }) },
);

let test_: TestEngine;

beforeAll(async () => {
  test_ = await openTestEngine({ limit });
});

afterAll(() => test_.close());

/** What the operations act on: all assignments ever made, stale ones too. */
interface World {
  runs: string[];
  assignments: Assignment[];
  connections: string[];
  /** Events that each execution's agent has sent, and turns that it has ended. */
  agents: Map<string, { seq: number; turns: number }>;
  followups: number;
  requests: number;
}

const at = '2026-01-02T03:04:05.000Z';

/** The agent of an assignment sends one event; undefined where its token opens nothing any more. */
async function tell(world: World, assignment: Assignment, body: AgentEventBody): Promise<void> {
  const { engine } = test_;
  const session = await authenticateRunToken(engine.db, assignment.runToken);
  if (!session) return;
  const agent = world.agents.get(assignment.executionId) ?? { seq: 0, turns: 0 };
  world.agents.set(assignment.executionId, agent);
  agent.seq += 1;
  await applyAgentEvents(engine, session, [{ seq: agent.seq, occurred_at: at, ...body }]);
}

async function perform(world: World, op: Operation): Promise<void> {
  const { engine } = test_;
  const choose = <T>(list: T[]): T | undefined => list[op.pick % Math.max(1, list.length)];
  const assignment = choose(world.assignments);
  const target = assignment && { runId: assignment.runId, executionId: assignment.executionId };
  switch (op.do) {
    case 'create':
      world.runs.push(await test_.newRun());
      return;
    case 'assign': {
      const made = await test_.assign(choose(world.connections) as string);
      if (made) world.assignments.push(made);
      return;
    }
    case 'claim':
      if (assignment && target)
        await claim(engine.db, { ...target, args: { assignment_id: assignment.assignmentId, lease_seconds: 60 } });
      return;
    case 'reject':
      if (assignment && target)
        await requeue(engine.db, { ...target, args: { assignment_id: assignment.assignmentId } });
      return;
    case 'start':
      if (assignment) await tell(world, assignment, { type: 'agent_started', harness: 'oz', model_id: 'runbook' });
      return;
    case 'succeed':
    case 'fail': {
      if (!assignment || !target || !(await authenticateRunToken(engine.db, assignment.runToken))) return;
      const error = op.do === 'fail' ? { message: 'It went wrong.', ...(op.code ? { code: op.code } : {}) } : undefined;
      const agent = world.agents.get(assignment.executionId) ?? { seq: 0, turns: 0 };
      world.agents.set(assignment.executionId, agent);
      // Now and then a report comes a second time, or late.
      const turn = op.pick % 5 === 0 ? Math.max(1, agent.turns) : ++agent.turns;
      const report = { turn, success: op.do === 'succeed', summary: 'The end.', ...(error ? { error } : {}) };
      await engine.db.transaction((tx) => finishRun(engine, tx, { ...target, report }));
      return;
    }
    case 'follow_up': {
      const runId = choose(world.runs);
      if (!runId) return;
      const from = { kind: 'user', uid: 'tester' } as const;
      const outcome = await engine.db.transaction((tx) => acceptFollowup(tx, runId, { message: 'And then?', from }));
      expect(['joined', 'resumed', 'continued', 'debugging']).toContain(outcome.kind);
      world.followups += 1;
      return;
    }
    case 'block': {
      if (!assignment) return;
      world.requests += 1;
      const request = { request_id: `q${world.requests}`, kind: 'permission', title: 'May I?' } as const;
      await tell(world, assignment, { type: 'blocked', step_id: 's', request });
      return;
    }
    case 'approve':
    case 'deny': {
      const runId = choose(world.runs);
      if (!runId) return;
      const followup = { decision: op.do, from: { kind: 'user', uid: 'tester' } } as const;
      const outcome = await engine.db.transaction((tx) => acceptFollowup(tx, runId, followup));
      expect(['refused', 'resumed', 'continued']).toContain(outcome.kind);
      if (outcome.kind !== 'refused') world.followups += 1;
      return;
    }
    case 'take': {
      if (!assignment) return;
      const session = await authenticateRunToken(engine.db, assignment.runToken);
      if (!session) return;
      const none = { after: 0, interrupted: 0 };
      const inbox = await waitForInbox(engine, session, none, 0, AbortSignal.abort());
      if (inbox === 'superseded') return;
      const next = inbox.items.find((item) => item.type === 'follow_up');
      if (next) await tell(world, assignment, { type: 'follow_up_taken', follow_up_id: next.id });
      return;
    }
    case 'join': {
      const session = assignment && (await authenticateRunToken(engine.db, assignment.runToken));
      if (session) await engine.db.transaction((tx) => joinFollowups(tx, session));
      return;
    }
    case 'await':
      if (assignment) await markAwaiting(engine.db, assignment.executionId, 3_600_000);
      return;
    case 'evict':
      await evictIdle(engine, choose(world.connections) as string, 1);
      return;
    case 'cancel': {
      const runId = choose(world.runs);
      if (runId) await cancelRun(engine, runId);
      return;
    }
    case 'end_sandbox':
      if (target) await endSandbox(engine, target.executionId, { kind: op.kind, message: 'Its sandbox ended.' });
      return;
    case 'drop_connection': {
      const connectionId = choose(world.connections) as string;
      for (const assigned of await findAssigned(engine.db, connectionId)) {
        await requeue(engine.db, { ...assigned, args: { assignment_id: assigned.assignmentId } });
      }
      await dropWorkerConnection(engine.db, connectionId, 0);
      return;
    }
    case 'time_out':
      if (target) {
        await engine.db.pool.query(
          `UPDATE executions SET ${op.column} = clock_timestamp() - interval '1 hour' WHERE id = $1 AND ${op.column} IS NOT NULL`,
          [target.executionId],
        );
      }
      return;
    case 'reconcile':
      await reconcile(engine);
  }
}

async function checkInvariants(world: World): Promise<void> {
  const { pool } = test_.engine.db;
  const { rows: followups } = await pool.query(`
    SELECT count(*)::int AS kept,
      count(*) FILTER (WHERE f.execution_id IS NULL AND e.phase = 'idle' AND (r.state = 'SUCCEEDED' OR f.is_debug))::int AS forgotten,
      count(*) FILTER (WHERE f.is_debug AND f.execution_id = e.id AND e.started_at IS NULL AND r.state = 'QUEUED')::int AS debugged_again,
      count(*) FILTER (WHERE f.answers = r.open_request->>'request_id')::int AS answered_and_open,
      count(f.answers)::int - count(DISTINCT f.answers)::int AS answered_again
    FROM followups f JOIN runs r ON r.id = f.run_id JOIN executions e ON e.id = r.current_execution_id`);
  expect(followups[0], 'every follow-up is kept, no agent rests while one waits, a request has one answer').toEqual({
    kept: world.followups,
    forgotten: 0,
    debugged_again: 0,
    answered_and_open: 0,
    answered_again: 0,
  });
  const { rows: runs } = await pool.query(`
    SELECT r.id, r.state, r.event_seq, r.open_request->>'request_id' AS asks, e.phase, e.number, e.deadline_at, e.idle_until,
      (SELECT max(number) FROM executions x WHERE x.run_id = r.id) AS newest,
      (SELECT count(*) FROM executions x WHERE x.run_id = r.id) AS executions,
      (SELECT count(*) FROM executions x WHERE x.run_id = r.id AND x.phase IN ('assigned', 'claimed', 'running', 'idle', 'stopping')) AS live,
      (SELECT jsonb_agg(jsonb_build_object('seq', v.seq, 'state', v.state, 'type', v.event_type) ORDER BY v.seq) FROM run_events v WHERE v.run_id = r.id) AS events,
      (SELECT array_agg(s.seq::int ORDER BY s.seq) FROM (SELECT seq FROM run_events WHERE run_id = r.id
        UNION ALL SELECT seq FROM conversation_events WHERE run_id = r.id) s) AS numbers
    FROM runs r JOIN executions e ON e.id = r.current_execution_id`);
  const { rows: busy } = await pool.query(
    // An agent that waited, for a follow-up or for others, goes on without asking for a place; it counts for those that begin.
    "SELECT count(*) AS n FROM executions WHERE phase IN ('assigned', 'claimed', 'running') AND idle_seconds = 0 AND awaiting_until IS NULL GROUP BY team_id",
  );
  for (const row of busy) expect(Number(row.n)).toBeLessThanOrEqual(limit);
  for (const run of runs) {
    expect(phasesOf[run.state], `state ${run.state} with its execution`).toContain(run.phase);
    expect(run.asks !== null, 'it asks something exactly while it is BLOCKED').toBe(run.state === 'BLOCKED');
    if (run.state === 'BLOCKED') expect(run.deadline_at, 'who waits for a person has no deadline').toBeNull();
    if (run.phase === 'running') expect(['INPROGRESS', 'FAILED']).toContain(run.state);
    expect(run.idle_until !== null, 'who waits has an end of it').toBe(run.phase === 'idle');
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

/** Time passes and nobody helps: every run must come to an end, because every wait has a limit. */
async function letTimePass(): Promise<void> {
  const { engine } = test_;
  const columns = ['claim_deadline', 'lease_until', 'deadline_at', 'stop_deadline', 'queued_at', 'idle_until'];
  const past = columns.map((column) => `${column} = ${column} - interval '2 days'`).join(', ');
  for (let round = 0; round < 12; round += 1) {
    await engine.db.pool.query(`UPDATE executions SET ${past} WHERE phase <> 'ended'`);
    await expireWaiting(engine);
    await reconcile(engine);
  }
  const { rows } = await engine.db.pool.query(`
    SELECT r.state, e.phase FROM runs r JOIN executions e ON e.run_id = r.id
    WHERE r.state NOT IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED', 'BLOCKED') OR e.phase <> 'ended'`);
  expect(rows, 'no run and no execution is stuck').toEqual([]);
}

test('random interleavings never leave a run illegal or stuck, run it twice at once, or lose its end', async () => {
  const runs = Number(process.env.PROPERTY_RUNS ?? 40);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(operation, { minLength: 1, maxLength: 5 }), { minLength: 5, maxLength: 40 }),
      async (groups) => {
        await test_.engine.db.pool.query('DELETE FROM runs; DELETE FROM worker_connections');
        const world: World = {
          runs: [],
          assignments: [],
          connections: [],
          agents: new Map(),
          followups: 0,
          requests: 0,
        };
        for (let n = 0; n < 3; n += 1) world.connections.push(await test_.newConnection());
        world.runs.push(await test_.newRun(), await test_.newRun());
        for (const group of groups) {
          await Promise.all(group.map((op) => perform(world, op)));
          await checkInvariants(world);
        }
        await letTimePass();
        await checkInvariants(world);
      },
    ),
    { numRuns: runs, interruptAfterTimeLimit: 240_000, markInterruptAsFailure: false },
  );
}, 300_000);
