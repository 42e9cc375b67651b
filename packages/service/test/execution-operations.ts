/** Test support: operations on runs and their executions, which a property test performs in random order. */
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ErrorCode } from '@runyard/contract/wire/errors';
import fc from 'fast-check';
import { expect } from 'vitest';
import { findAssigned } from '../src/edges/workers/lost-connections.ts';
import { cancelRun } from '../src/runs/executions/cancel/cancel.ts';
import { evictIdle } from '../src/runs/executions/idle/idle.ts';
import { dropWorkerConnection } from '../src/runs/executions/lease/connection-rows.ts';
import { type Assignment, hashRunToken } from '../src/runs/executions/queue/assign.ts';
import { markAwaiting } from '../src/runs/executions/queue/awaiting.ts';
import { reconcile } from '../src/runs/executions/reconcile/reconcile.ts';
import { endSandbox } from '../src/runs/executions/reconcile/sandbox-end.ts';
import { AttemptOver } from '../src/runs/executions/run-tokens/attempt.ts';
import { authenticateRunToken } from '../src/runs/executions/run-tokens/sessions.ts';
import { claim, requeue } from '../src/runs/executions/transitions/transitions.ts';
import { applyAgentEvents } from '../src/runs/harness-support/events/apply-agent-events.ts';
import { finishTask } from '../src/runs/harness-support/finish/finish-task.ts';
import { waitForInbox } from '../src/runs/harness-support/inbox.ts';
import { acceptFollowup } from '../src/runs/runs/follow-ups/accept.ts';
import { joinFollowups } from '../src/runs/runs/follow-ups/take-followups.ts';
import type { TestExecutions } from './executions.ts';

/** One operation. `pick` is a random number that selects the run, the assignment or the connection on which the operation acts. */
export type Operation =
  | { do: 'create' | 'assign' | 'claim' | 'reject' | 'start' | 'succeed' | 'cancel' | 'drop_connection'; pick: number }
  | { do: 'follow_up' | 'take' | 'join' | 'evict' | 'await' | 'block' | 'ask_in_failed_setup'; pick: number }
  | { do: 'approve' | 'deny'; pick: number }
  | { do: 'fail'; pick: number; code: ErrorCode | undefined }
  | { do: 'end_sandbox'; pick: number; kind: 'exited' | 'not_created' | 'lost' }
  | {
      do: 'time_out';
      pick: number;
      column: 'claim_deadline' | 'lease_until' | 'deadline_at' | 'stop_deadline' | 'idle_until' | 'awaiting_until';
    }
  | { do: 'reconcile'; pick: number };

const pick = fc.nat({ max: 1000 });
/** Generates random operations. Operations that are frequent in practice have a larger weight. */
export const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('create' as const), pick }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('assign' as const), pick }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('claim' as const), pick }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('start' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reject' as const, 'cancel', 'drop_connection'), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('succeed' as const), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('follow_up' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('take' as const, 'join'), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('block' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('ask_in_failed_setup' as const), pick }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('approve' as const, 'deny'), pick }) },
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

/** The runs, assignments and connections that the operations have created so far, including outdated assignments. */
export interface World {
  runs: string[];
  assignments: Assignment[];
  connections: string[];
  /** For each assignment, how many events its agent has sent and how many turns the agent has ended. */
  agents: Map<string, { seq: number; turns: number }>;
  followups: number;
  requests: number;
}

const at = '2026-01-02T03:04:05.000Z';

/** Sends one event as the agent of an assignment. Sends nothing if the agent's token is not valid any more. */
async function sendEvent(
  { deps: executionDeps }: TestExecutions,
  world: World,
  assignment: Assignment,
  body: AgentEventBody,
): Promise<void> {
  const session = await authenticateRunToken(executionDeps.db, assignment.runToken);
  if (!session) return;
  const agent = world.agents.get(assignment.assignmentId) ?? { seq: 0, turns: 0 };
  world.agents.set(assignment.assignmentId, agent);
  agent.seq += 1;
  await applyAgentEvents(executionDeps, session, [{ seq: agent.seq, occurred_at: at, ...body }]);
}

/** Waits for `work`, and ignores the error `AttemptOver`, because another operation may have ended the execution meanwhile. */
async function unlessOver(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof AttemptOver)) throw error;
  });
}

/** Sends a person's follow-up to the run. */
async function sendFollowup({ deps: executionDeps }: TestExecutions, world: World, runId: string): Promise<void> {
  const from = { kind: 'user', uid: 'tester' } as const;
  const outcome = await executionDeps.db.transaction((tx) => acceptFollowup(tx, runId, { message: 'And then?', from }));
  expect(['joined', 'resumed', 'continued', 'debugging']).toContain(outcome.kind);
  world.followups += 1;
}

/** Performs an operation in the same way as the process that does it in production. Does nothing if there is no object for the operation. */
export async function perform(test: TestExecutions, world: World, op: Operation): Promise<void> {
  const { deps: executionDeps } = test;
  const choose = <T>(list: T[]): T | undefined => list[op.pick % Math.max(1, list.length)];
  const assignment = choose(world.assignments);
  const target = assignment && { runId: assignment.runId, executionId: assignment.executionId };
  switch (op.do) {
    case 'create':
      world.runs.push(await test.newRun({ config: op.pick % 2 === 0 ? {} : { on_worker_loss: 'resume' } }));
      return;
    case 'assign': {
      const made = await test.assign(choose(world.connections) as string);
      if (made) world.assignments.push(made);
      return;
    }
    case 'claim':
      if (assignment && target)
        await claim(executionDeps.db, {
          ...target,
          args: { assignment_id: assignment.assignmentId, lease_seconds: 60 },
        });
      return;
    case 'reject':
      if (assignment && target)
        await requeue(executionDeps.db, { ...target, args: { assignment_id: assignment.assignmentId } });
      return;
    case 'start':
      if (assignment)
        await sendEvent(test, world, assignment, { type: 'agent_started', harness: 'oz', model_id: 'runbook' });
      return;
    case 'succeed':
    case 'fail': {
      const session = assignment && (await authenticateRunToken(executionDeps.db, assignment.runToken));
      if (!session) return;
      const error = op.do === 'fail' ? { message: 'It went wrong.', ...(op.code ? { code: op.code } : {}) } : undefined;
      const agent = world.agents.get(assignment.assignmentId) ?? { seq: 0, turns: 0 };
      world.agents.set(assignment.assignmentId, agent);
      // Repeat the report of the last turn in some cases, because a report may arrive twice.
      const turn = op.pick % 5 === 0 ? Math.max(1, agent.turns) : ++agent.turns;
      const report = { turn, success: op.do === 'succeed', summary: 'The end.', ...(error ? { error } : {}) };
      await unlessOver(finishTask(executionDeps, session, report));
      return;
    }
    case 'follow_up': {
      const runId = choose(world.runs);
      if (!runId) return;
      await sendFollowup(test, world, runId);
      return;
    }
    case 'ask_in_failed_setup':
      // Perform three operations that lead to a question in a failed setup, because random operations would rarely come in this order.
      await perform(test, world, { do: 'fail', pick: op.pick, code: 'environment_setup_failed' });
      if (target) await sendFollowup(test, world, target.runId);
      await perform(test, world, { do: 'block', pick: op.pick });
      return;
    case 'block': {
      if (!assignment) return;
      world.requests += 1;
      const request = { request_id: `q${world.requests}`, kind: 'permission', title: 'May I?' } as const;
      await sendEvent(test, world, assignment, { type: 'blocked', step_id: 's', request });
      return;
    }
    case 'approve':
    case 'deny': {
      const runId = choose(world.runs);
      if (!runId) return;
      const followup = { decision: op.do, from: { kind: 'user', uid: 'tester' } } as const;
      const outcome = await executionDeps.db.transaction((tx) => acceptFollowup(tx, runId, followup));
      expect(['refused', 'resumed', 'continued', 'debugging']).toContain(outcome.kind);
      if (outcome.kind !== 'refused') world.followups += 1;
      return;
    }
    case 'take': {
      if (!assignment) return;
      const session = await authenticateRunToken(executionDeps.db, assignment.runToken);
      if (!session) return;
      const none = { after: 0, interrupted: 0 };
      const inbox = await waitForInbox(executionDeps, session, none, 0, AbortSignal.abort());
      if (inbox === 'superseded') return;
      const next = inbox.items.find((item) => item.type === 'follow_up');
      if (next) await sendEvent(test, world, assignment, { type: 'follow_up_taken', follow_up_id: next.id });
      return;
    }
    case 'join': {
      const session = assignment && (await authenticateRunToken(executionDeps.db, assignment.runToken));
      if (session) await unlessOver(executionDeps.db.transaction((tx) => joinFollowups(tx, session)));
      return;
    }
    case 'await':
      if (assignment) {
        const attempt = { executionId: assignment.executionId, tokenHash: hashRunToken(assignment.runToken) };
        await markAwaiting(executionDeps.db, attempt, 3_600_000, world.runs);
      }
      return;
    case 'evict':
      await evictIdle(executionDeps, choose(world.connections) as string, 1);
      return;
    case 'cancel': {
      const runId = choose(world.runs);
      if (runId) await cancelRun(executionDeps, runId);
      return;
    }
    case 'end_sandbox':
      if (target) await endSandbox(executionDeps, target.executionId, { kind: op.kind, message: 'Its sandbox ended.' });
      return;
    case 'drop_connection': {
      const connectionId = choose(world.connections) as string;
      for (const assigned of await findAssigned(executionDeps.db, connectionId)) {
        await requeue(executionDeps.db, { ...assigned, args: { assignment_id: assigned.assignmentId } });
      }
      await dropWorkerConnection(executionDeps.db, connectionId, 0);
      return;
    }
    case 'time_out':
      if (target) {
        await executionDeps.db.pool.query(
          `UPDATE executions SET ${op.column} = clock_timestamp() - interval '1 hour' WHERE id = $1 AND ${op.column} IS NOT NULL`,
          [target.executionId],
        );
      }
      return;
    case 'reconcile':
      await reconcile(executionDeps);
  }
}
