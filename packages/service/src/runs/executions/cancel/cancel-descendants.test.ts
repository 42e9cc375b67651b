import { randomUUIDv7 } from 'node:crypto';
import type { FinishTask } from '@runyard/contract/agent/finish-task';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import { applyAgentEvents } from '../../harness-support/events/apply-agent-events.ts';
import { finishRun } from '../../harness-support/finish/finish-run.ts';
import { deleteRun } from '../../runs/delete.ts';
import { acceptFollowup } from '../../runs/follow-ups/accept.ts';
import type { Assignment } from '../queue/assign.ts';
import { reconcile } from '../reconcile/reconcile.ts';
import { endSandbox } from '../reconcile/sandbox-end.ts';
import { authenticateRunToken } from '../run-tokens/sessions.ts';
import { claim } from '../transitions/transitions.ts';
import { cancelRun } from './cancel.ts';
import { cancelLocked } from './cancel-descendants.ts';

let connection: string;
const t = closeAtEnd(await openTestExecutions());
beforeEach(async () => {
  await t.deps.db.pool.query('DELETE FROM runs; DELETE FROM worker_connections');
  connection = await t.newConnection();
});

interface Row {
  id: string;
  state: string;
  cascade_at: string | null;
  status_message: string | null;
}
const read = async (id: string): Promise<Row> => {
  const [row] = await t.deps.db.query<Row>('SELECT id, state, cascade_at, status_message FROM runs WHERE id = $1', [
    id,
  ]);
  if (!row) throw new Error(`no run ${id}`);
  return row;
};
const stateOf = async (id: string) => (await read(id)).state;

/** Creates a child run. `above` are the ids of its ancestors, the parent first. */
const below = (...above: string[]) => t.newRun({ parentRunId: above[0] ?? '', ancestorIds: above });

async function tell(assignment: Assignment, seq: number, body: AgentEventBody): Promise<void> {
  const session = await authenticateRunToken(t.deps.db, assignment.runToken);
  if (session) await applyAgentEvents(t.deps, session, [{ seq, occurred_at: '2026-01-02T03:04:05.000Z', ...body }]);
}
const assigned = async () => (await t.assign(connection)) ?? expect.fail('nothing was assigned');
const claimed = async (assignment: Assignment) => {
  const { runId, executionId, assignmentId } = assignment;
  await claim(t.deps.db, { runId, executionId, args: { assignment_id: assignmentId, lease_seconds: 60 } });
  return assignment;
};
const started = async (assignment: Assignment) => {
  await tell(assignment, 1, { type: 'agent_started', harness: 'oz', model_id: 'runbook' });
  return assignment;
};
const report = async ({ runId, executionId }: Assignment, task: FinishTask) =>
  await t.deps.db.transaction(async (tx) => {
    await tx.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [runId]);
    await finishRun(t.deps, tx, { runId, executionId, report: task });
  });
const finish = (assignment: Assignment) => report(assignment, { success: true, summary: 'done' });
const followUp = async (runId: string) => {
  const { kind } = await t.deps.db.transaction((tx) =>
    acceptFollowup(tx, runId, { message: 'And?', from: { kind: 'user', uid: 'tester' } }),
  );
  return kind;
};
/**
 * Does only the first transaction of a cancel, like a process that dies right after this transaction. So only the run itself is cancelled.
 */
const cancelAndDie = async (runId: string) =>
  await t.deps.db.transaction(async (tx) => {
    const [run] = await tx.query<{ state: 'QUEUED' | 'INPROGRESS'; current_execution_id: string }>(
      'SELECT state, current_execution_id FROM runs WHERE id = $1 FOR UPDATE',
      [runId],
    );
    if (!run) throw new Error('no run');
    return await cancelLocked(t.deps, tx, {
      runId,
      executionId: run.current_execution_id,
      state: run.state,
      cascades: true,
    });
  });

test('a cancel of a run cancels its live descendants in every state, and no other runs', async () => {
  const root = await t.newRun();
  await started(await claimed(await assigned()));
  const running = await below(root);
  const start = await started(await claimed(await assigned()));
  expect(start.runId).toBe(running);
  const waiting = await below(root);
  await finish(await started(await claimed(await assigned())));
  const grandchild = await below(running, root);
  const provisioned = await claimed(await assigned());
  const queued = await below(grandchild, running, root);
  const stranger = await t.newRun();
  expect([await stateOf(waiting), provisioned.runId]).toEqual(['SUCCEEDED', grandchild]);

  expect(await cancelRun(t.deps, root)).toBe('cancelled');
  expect(await Promise.all([root, running, grandchild, queued].map(stateOf))).toEqual(Array(4).fill('CANCELLED'));
  expect(await Promise.all([waiting, stranger].map(stateOf))).toEqual(['SUCCEEDED', 'QUEUED']);
  expect((await read(queued)).status_message).toContain(root);
  expect((await read(root)).cascade_at, 'there is nothing left to do').toBeNull();
  const events = await t.deps.db.query(
    "SELECT payload FROM run_events WHERE run_id = $1 AND event_type = 'oz_run_cancelled'",
    [grandchild],
  );
  expect(events).toEqual([{ payload: { ancestor_run_id: root } }]);
  const orders = await t.deps.db.query(
    "SELECT run_id FROM executions WHERE phase = 'stopping' AND stop_reason = 'ordered' ORDER BY run_id",
  );
  expect(orders, 'their sandboxes are ended too').toHaveLength(3);
});

test('a cancel of a run does not cancel its ancestors and siblings', async () => {
  const root = await t.newRun();
  const [left, right] = [await below(root), await below(root)];
  const leaf = await below(left, root);
  await cancelRun(t.deps, left);
  expect(await Promise.all([root, left, right, leaf].map(stateOf))).toEqual([
    'QUEUED',
    'CANCELLED',
    'QUEUED',
    'CANCELLED',
  ]);
});

test('a PENDING child of a cancelled run is cancelled when a worker claims the child, and the run cannot be deleted before that', async () => {
  const root = await t.newRun();
  await started(await claimed(await assigned()));
  const child = await below(root);
  const pending = await assigned();
  expect(await cancelRun(t.deps, root)).toBe('cancelled');
  expect(await stateOf(child)).toBe('PENDING');
  await t.deps.db.query("UPDATE executions SET phase = 'ended' WHERE run_id = $1", [root]);
  expect(await deleteRun(t.deps, t.teamId, root, 0)).toEqual({ kind: 'sandbox_running' });
  await reconcile(t.deps);
  expect(await stateOf(child)).toBe('PENDING');
  await claimed(pending);
  await reconcile(t.deps);
  expect(await stateOf(child)).toBe('CANCELLED');
  expect(await deleteRun(t.deps, t.teamId, root, 0)).toMatchObject({ kind: 'deleted' });
});

test('the reconciler of another process completes a cancel after the process that began it has died', async () => {
  const root = await t.newRun();
  const child = await below(root);
  const grandchild = await below(child, root);
  expect(await cancelAndDie(root)).toBe('cancelled');
  expect(await Promise.all([child, grandchild].map(stateOf))).toEqual(['QUEUED', 'QUEUED']);
  await Promise.all([reconcile(t.deps), reconcile(t.deps)]);
  expect(await Promise.all([child, grandchild].map(stateOf))).toEqual(['CANCELLED', 'CANCELLED']);
});

test('a child whose sandbox is lost before the cancel reaches the child ends as CANCELLED and not as failed', async () => {
  const root = await t.newRun();
  await started(await claimed(await assigned()));
  const [working, provisioned, other] = [await below(root), await below(root), await t.newRun()];
  const launches = [await started(await claimed(await assigned())), await claimed(await assigned())];
  const stranger = await started(await claimed(await assigned()));
  expect(launches.map(({ runId }) => runId)).toEqual([working, provisioned]);
  await cancelAndDie(root);
  for (const { executionId } of [...launches, stranger]) {
    await endSandbox(t.deps, executionId, { kind: 'lost', message: 'Its worker was restarted.' });
  }
  expect(await Promise.all([working, provisioned, other].map(stateOf))).toEqual(['CANCELLED', 'CANCELLED', 'ERROR']);
  expect((await read(working)).status_message).toContain(root);
  const phases = await t.deps.db.query('SELECT phase FROM executions WHERE run_id = ANY($1)', [[working, provisioned]]);
  expect(phases, 'ended sandboxes get no order').toEqual([{ phase: 'ended' }, { phase: 'ended' }]);
});

test('the reconciler cancels a child that returned to the queue, after an error, since the cancel of its parent', async () => {
  const root = await t.newRun();
  await started(await claimed(await assigned()));
  const child = await below(root);
  const assignment = await claimed(await assigned());
  await cancelAndDie(root);
  const error = { code: 'resource_unavailable' as const, message: 'No room.' };
  await report(assignment, { success: false, summary: '', error });
  expect(await stateOf(child)).toBe('QUEUED');
  await reconcile(t.deps);
  expect(await stateOf(child)).toBe('CANCELLED');
});

test('the reconciler does not cancel a child that a person continued after the cancel of the parent', async () => {
  const root = await t.newRun();
  await started(await claimed(await assigned()));
  const ended = await below(root);
  const idle = await below(root);
  for (const child of [ended, idle]) {
    const launch = await started(await claimed(await assigned()));
    expect(launch.runId).toBe(child);
    await finish(launch);
  }
  await t.deps.db.query("UPDATE executions SET phase = 'ended' WHERE run_id = $1", [ended]);
  await cancelAndDie(root);
  expect([await followUp(ended), await followUp(idle)]).toEqual(['continued', 'resumed']);
  await reconcile(t.deps);
  expect(await Promise.all([ended, idle].map(stateOf))).toEqual(['QUEUED', 'INPROGRESS']);
  // A run that the agent of the continued child starts now is not cancelled either.
  const grandchild = await below(idle, root);
  await reconcile(t.deps);
  expect(await stateOf(grandchild)).toBe('QUEUED');
});

test('the reconciler cancels the descendants of a cancelled run even if a person has already continued that run', async () => {
  const root = await t.newRun();
  const child = await below(root);
  await cancelAndDie(root);
  expect(await followUp(root)).toBe('continued');
  await reconcile(t.deps);
  expect([await stateOf(root), await stateOf(child)]).toEqual(['QUEUED', 'CANCELLED']);
});

describe('a request to create a child run', () => {
  const exists = async (id: string) => (await t.deps.db.query('SELECT FROM runs WHERE id = $1', [id])).length === 1;

  test('creates no run if the parent or an ancestor of the parent is cancelled', async () => {
    const root = await t.newRun();
    const child = await below(root);
    await cancelAndDie(root);
    expect(await exists(await below(root))).toBe(false);
    expect(await exists(await below(child, root))).toBe(false);
    await followUp(root);
    expect(await exists(await below(root)), 'it was continued').toBe(true);
  });

  test('does not record its Idempotency-Key if it is refused', async () => {
    const root = await t.newRun();
    await cancelRun(t.deps, root);
    const once = { teamId: t.teamId, principal: 'p', key: randomUUIDv7(), requestHash: Buffer.alloc(32) };
    expect(await exists(await t.newRun({ parentRunId: root, ancestorIds: [root] }, once))).toBe(false);
    expect(await t.deps.db.query('SELECT FROM idempotency_keys')).toEqual([]);
  });
});

test('a cancel leaves no live descendant of the cancelled run, even if runs are created during the cancel', async () => {
  type Operation = { do: 'create' | 'cancel' | 'die' | 'start' | 'reconcile'; pick: number };
  const operation: fc.Arbitrary<Operation> = fc.record({
    do: fc.constantFrom('create', 'create', 'create', 'cancel', 'die', 'start', 'reconcile'),
    pick: fc.nat({ max: 1000 }),
  });
  const tree = async (groups: Operation[][]) => {
    await t.deps.db.pool.query('DELETE FROM runs');
    const known: string[][] = [[await t.newRun()]];
    const perform = async (op: Operation) => {
      const place = known[op.pick % known.length] ?? [];
      const [id = ''] = place;
      switch (op.do) {
        case 'create': {
          if (place.length < 4) known.push([await below(...place), ...place]);
          return;
        }
        case 'cancel':
          return void (await cancelRun(t.deps, id));
        case 'die':
          return void (await cancelAndDie(id).catch(() => {}));
        case 'start': {
          const assignment = await t.assign(connection);
          if (assignment && op.pick % 3 > 0) await started(await claimed(assignment));
          return;
        }
        case 'reconcile':
          await reconcile(t.deps);
      }
    };
    for (const group of groups) await Promise.all(group.map(perform));
    // Move all claim deadlines into the past, so that PENDING executions return to the queue and can be cancelled.
    await t.deps.db.pool.query("UPDATE executions SET claim_deadline = now() - interval '1 hour'");
    await reconcile(t.deps);
    await reconcile(t.deps);
    const alive = await t.deps.db.query(`
      SELECT c.id, c.state FROM runs c WHERE c.state NOT IN ('SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED')
        AND EXISTS (SELECT FROM runs a WHERE a.id = ANY(c.ancestor_ids) AND a.state = 'CANCELLED')`);
    expect(alive).toEqual([]);
    expect(await t.deps.db.query('SELECT FROM runs WHERE cascade_at IS NOT NULL')).toEqual([]);
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(operation, { minLength: 2, maxLength: 6 }), { minLength: 2, maxLength: 12 }),
      tree,
    ),
    {
      numRuns: Number(process.env.PROPERTY_RUNS ?? 30),
      interruptAfterTimeLimit: 100_000,
      markInterruptAsFailure: false,
    },
  );
});
