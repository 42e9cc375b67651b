import type { ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey, insertWorkerPool } from '../../../test/key.ts';
import { cancelRun } from '../../runs/executions/cancel/cancel.ts';
import { reconcile } from '../../runs/executions/reconcile/reconcile.ts';
import { awaitChildren } from '../../runs/runs/tree/children.ts';
import { type Hub, type HubConnection, openHub } from './hub.ts';

let t: TestExecutions;
let hub: Hub;
let keyId: string;

beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions({ timing: { cancelGraceSeconds: 300 } }));
  keyId = await insertWorkerKey(t.deps.db, t.teamId);
  hub = closeAtEnd(openHub(t.deps, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' }));
});

interface Fake {
  readonly sent: ServiceMessage[];
  readonly connection: HubConnection;
  say(type: 'task_claimed' | 'task_completed', executionId: string, runId: string): Promise<void>;
}

const sandbox = { backend: 'bubblewrap' as const, features: [], missing: [] };

function hello(
  slots: number,
  more: Partial<Extract<WorkerMessage, { type: 'worker_hello' }>['data']> = {},
): WorkerMessage {
  return {
    type: 'worker_hello',
    data: {
      worker_id: 'runyard-a',
      instance_id: 'i1',
      slots,
      executions: [],
      sandbox,
      draining: false,
      ...more,
    },
  };
}

async function connect(
  greeting: WorkerMessage | null,
  workerId = 'runyard-a',
  teamId: string | null = null,
): Promise<Fake> {
  const sent: ServiceMessage[] = [];
  if (teamId !== null) await insertWorkerPool(t.deps.db, teamId, workerId);
  const connection = await hub.connect({
    workerId,
    teamId,
    keyId,
    send: (message) => sent.push(message),
    end: () => {},
  });
  if (greeting) await connection.message(greeting);
  return {
    sent,
    connection,
    say: (type, execution_id, task_id) =>
      connection.message(
        type === 'task_claimed'
          ? { type, data: { task_id, execution_id, worker_id: workerId } }
          : { type, data: { task_id, execution_id, message: 'done' } },
      ),
  };
}

async function states(): Promise<string[]> {
  const { rows } = await t.deps.db.pool.query('SELECT state FROM runs ORDER BY created_at, id');
  return rows.map((row) => row.state);
}

const assignments = (fake: Fake) =>
  fake.sent.flatMap((message) => (message.type === 'task_assignment' ? [message.data] : []));
const orders = (fake: Fake) =>
  fake.sent.flatMap((message) => (message.type === 'task_cancellation' ? [message.data] : []));

/** The token that the service issued in its answer to the first hello. */
function tokenOf(fake: Fake): string {
  const [welcome] = fake.sent.flatMap((message) => (message.type === 'worker_welcome' ? [message.data] : []));
  if (!welcome) throw new Error('no token was issued');
  return welcome.token;
}

async function untilAssigned(fake: Fake, count: number) {
  await vi.waitFor(() => expect(assignments(fake)).toHaveLength(count), { timeout: 60_000 });
  const [first = expect.fail('no assignment'), ...others] = assignments(fake);
  return [first, ...others] as const;
}

test('a worker gets only as many executions as it has slots, and gets another execution when a slot becomes free', async () => {
  const fake = await connect(hello(2));
  for (let n = 0; n < 3; n += 1) await t.newRun();
  const [first] = await untilAssigned(fake, 2);
  await hub.dispatch();
  expect((await states()).sort()).toEqual(['PENDING', 'PENDING', 'QUEUED']);
  await fake.say('task_claimed', first.execution_id, first.task_id);
  await fake.say('task_completed', first.execution_id, first.task_id);
  await untilAssigned(fake, 3);
});

test('the hub assigns a rejected execution to another worker', async () => {
  const full = await connect(hello(1));
  await t.newRun();
  const [first] = await untilAssigned(full, 1);
  const other = await connect(hello(1, { instance_id: 'i2' }));
  await full.connection.message({
    type: 'task_rejected',
    data: { task_id: first.task_id, execution_id: first.execution_id, reason: 'full' },
  });
  const [second] = await untilAssigned(other, 1);
  expect(second?.execution_id).toBe(first.execution_id);
  expect(second?.env_vars).not.toEqual(first.env_vars);
});

test('an assignment returns to the queue at once if its connection is lost before the claim', async () => {
  const fake = await connect(hello(1));
  await t.newRun();
  await untilAssigned(fake, 1);
  await fake.connection.closed();
  expect(await states()).toEqual(['QUEUED']);
});

test('a worker whose claim arrives after the assignment was taken back is ordered to stop the sandbox', async () => {
  const late = await connect(hello(1));
  await t.newRun();
  const [first] = await untilAssigned(late, 1);
  await t.deps.db.pool.query("UPDATE executions SET claim_deadline = now() - interval '1 second'");
  await reconcile(t.deps);
  await late.say('task_claimed', first.execution_id, first.task_id);
  expect(orders(late)).toMatchObject([{ execution_id: first.execution_id, grace_ms: 0 }]);
  expect(['QUEUED', 'PENDING']).toContain((await states())[0]);
});

test('a worker whose assignment was taken back cannot end the sandbox of the next worker', async () => {
  const late = await connect(hello(1));
  const runId = await t.newRun();
  const [first] = await untilAssigned(late, 1);
  const other = await connect(hello(1, { instance_id: 'i2' }));
  await t.deps.db.pool.query("UPDATE executions SET claim_deadline = now() - interval '1 second'");
  await reconcile(t.deps);
  const [second] = await untilAssigned(other, 1);
  expect(second?.execution_id).toBe(first.execution_id);
  await other.say('task_claimed', first.execution_id, runId);
  await late.say('task_completed', first.execution_id, runId);
  expect(await states()).toEqual(['CLAIMED']);
});

test('an assignment that fails without a claim counts as a try', async () => {
  const fake = await connect(hello(1));
  await t.newRun();
  const [first] = await untilAssigned(fake, 1);
  const failure = { phase: 'prepare' as const, reason: 'no_image' };
  const data = { task_id: first.task_id, execution_id: first.execution_id, message: 'no image', failure };
  await fake.connection.message({ type: 'task_failed', data });
  const [, second] = await untilAssigned(fake, 2);
  expect(second?.execution_id).not.toBe(first.execution_id);
});

test('a turn is resumed if the cluster ended the pod, even before the worker saw it start, but not if the agent ended', async () => {
  const fake = await connect(hello(2));
  const lose = async (reason: string, count: number, phase: 'spawn' | 'run' = 'run') => {
    const runId = await t.newRun({ config: { on_worker_loss: 'resume' } });
    const assigned = (await untilAssigned(fake, count)).find(({ task_id }) => task_id === runId);
    const execution_id = assigned?.execution_id ?? '';
    await fake.say('task_claimed', execution_id, runId);
    await t.deps.db.pool.query("UPDATE executions SET phase = 'running' WHERE id = $1", [execution_id]);
    await t.deps.db.pool.query("UPDATE runs SET state = 'INPROGRESS' WHERE id = $1", [runId]);
    const failure = { phase, reason };
    const data = { task_id: runId, execution_id, message: 'ended', failure };
    await fake.connection.message({ type: 'task_failed', data });
  };
  await lose('agent_exited', 1);
  expect(await states()).toEqual(['ERROR']);
  await lose('node_lost', 2);
  const [, lost, again] = await untilAssigned(fake, 3);
  expect(again?.task_id).toBe(lost?.task_id);
  await lose('node_lost', 4, 'spawn');
  const [, , , unseen, afterwards] = await untilAssigned(fake, 5);
  expect(afterwards?.task_id).toBe(unseen?.task_id);
});

test('the worker gets a cancel with the remaining grace time', async () => {
  const fake = await connect(hello(1));
  const runId = await t.newRun();
  const [first] = await untilAssigned(fake, 1);
  expect(await cancelRun(t.deps, runId)).toBe('pending');
  await fake.say('task_claimed', first.execution_id, runId);
  expect(await cancelRun(t.deps, runId)).toBe('cancelled');
  await vi.waitFor(() => expect(orders(fake)).toHaveLength(1), { timeout: 60_000 });
  expect(orders(fake)[0]?.grace_ms).toBeGreaterThan(200_000);
  await hub.sendStopOrders();
  expect(orders(fake), 'the order is sent once').toHaveLength(1);
});

test('executions that have not reached INPROGRESS are tried again at once if a restarted worker does not list them', async () => {
  const before = await connect(hello(1));
  const runId = await t.newRun();
  const [first] = await untilAssigned(before, 1);
  await before.say('task_claimed', first.execution_id, runId);
  await before.connection.closed();
  const after = await connect(hello(1, { instance_id: 'i2', replaced_tokens: [tokenOf(before)] }));
  const [second] = await untilAssigned(after, 1);
  expect(second?.task_id).toBe(runId);
  expect(second?.execution_id).not.toBe(first.execution_id);
});

test('a reconnecting worker keeps its executions, and is ordered to end executions that are not assigned to it', async () => {
  const before = await connect(hello(2));
  const runId = await t.newRun();
  const [first] = await untilAssigned(before, 1);
  await before.say('task_claimed', first.execution_id, runId);
  await before.connection.closed();
  const strange = '01a1fdad-b3cf-7c20-a9f8-51440e63fad9';
  const held = [
    { task_id: runId, execution_id: first.execution_id },
    { task_id: strange, execution_id: strange },
  ];
  const after = await connect(hello(2, { token: tokenOf(before), executions: held }));
  expect(orders(after)).toMatchObject([{ execution_id: strange, grace_ms: 0 }]);
  expect(await states()).toEqual(['CLAIMED']);
  await after.say('task_completed', first.execution_id, runId);
  await vi.waitFor(async () => expect(await states()).not.toEqual(['CLAIMED']), { timeout: 60_000 });
});

test('a child run gets the only slot while its parent waits, and afterwards the parent takes a slot again', async () => {
  const parent = await t.newRun();
  const worker = await connect(hello(1));
  await vi.waitFor(() => expect(assignments(worker)).toHaveLength(1), 60_000);
  const { execution_id: executionId = '' } = assignments(worker)[0] ?? {};
  await worker.say('task_claimed', executionId, parent);
  const earlier = await t.newRun();
  const child = await t.newRun({ parentRunId: parent, ancestorIds: [parent] });
  await hub.dispatch();
  expect(assignments(worker)).toHaveLength(1);

  const { signal } = new AbortController();
  const [held] = await t.deps.db.query<{ tokenHash: Buffer }>(
    'SELECT token_hash AS "tokenHash" FROM executions WHERE id = $1',
    [executionId],
  );
  if (!held) throw new Error('there is no such execution');
  const waited = awaitChildren(
    t.deps,
    { runId: parent, executionId, ...held },
    { until: 'all', waitMs: 60_000, signal },
  );
  await vi.waitFor(() => expect(assignments(worker).map(({ task_id }) => task_id)).toEqual([parent, child]), 60_000);
  const told = () => worker.sent.flatMap((message) => (message.type === 'task_idle' ? [message.data] : []));
  expect(told()).toEqual([{ task_id: parent, execution_id: executionId, idle: true, awaits: true }]);
  // The order matters: the worker must free the slot before it gets the child.
  const types = worker.sent.map(({ type }) => type);
  expect(types.indexOf('task_idle')).toBeLessThan(types.lastIndexOf('task_assignment'));

  await worker.say('task_claimed', assignments(worker)[1]?.execution_id ?? '', child);
  await cancelRun(t.deps, child);
  expect(await waited).toBe('settled');
  await vi.waitFor(
    () => expect(told().at(-1)).toMatchObject({ execution_id: executionId, idle: false, awaits: false }),
    30_000,
  );
  await hub.dispatch();
  expect(
    assignments(worker).map(({ task_id }) => task_id),
    'the parent is at work again',
  ).not.toContain(earlier);
});

test.each([
  ['keeps its slot if no connected worker can run its child', 'nowhere', false],
  ['frees its slot if a connected worker can run its child', undefined, true],
])('a parent that waits %s', async (_, workerHost, frees) => {
  const parent = await t.newRun();
  const worker = await connect(hello(1));
  const [{ execution_id: executionId = '' } = {}] = await untilAssigned(worker, 1);
  await worker.say('task_claimed', executionId, parent);
  await t.newRun({ parentRunId: parent, ancestorIds: [parent], ...(workerHost === undefined ? {} : { workerHost }) });
  const held = 'SELECT token_hash AS "tokenHash", awaiting_until FROM executions WHERE id = $1';
  const read = async () =>
    (await t.deps.db.query<{ tokenHash: Buffer; awaiting_until: unknown }>(held, [executionId]))[0];
  const session = { runId: parent, executionId, tokenHash: (await read())?.tokenHash ?? Buffer.alloc(0) };
  const wait = { until: 'all', waitMs: 50, signal: new AbortController().signal } as const;
  expect(await awaitChildren(t.deps, session, wait)).toBe('waiting');
  expect((await read())?.awaiting_until !== null).toBe(frees);
});

test('a worker has a limited number of sandboxes that wait for other runs, and still gets the child runs of these runs', async () => {
  const worker = await connect(hello(1));
  const parents = [await t.newRun(), await t.newRun(), await t.newRun()];
  const allWait = async (count: number) => {
    await untilAssigned(worker, count);
    await t.deps.db.query(`UPDATE executions SET awaiting_until = now() + interval '1 hour' WHERE phase = 'assigned'`);
    await hub.sendStopOrders();
    await hub.dispatch();
    return assignments(worker).map(({ task_id }) => task_id);
  };
  await allWait(1);
  expect(await allWait(2)).toEqual(parents.slice(0, 2));
  const child = await t.newRun({ ancestorIds: [parents[0] ?? ''] });
  await hub.dispatch();
  expect(await allWait(3)).toEqual([...parents.slice(0, 2), child]);
});

test('a self-hosted worker gets only the runs of its team that name this worker', async () => {
  const fake = await connect(hello(5, { worker_id: 'mine' }), 'mine', t.teamId);
  await t.newRun();
  const named = await t.newRun({ workerHost: 'mine' });
  expect((await untilAssigned(fake, 1)).map((assignment) => assignment.task_id)).toEqual([named]);
  expect((await states()).sort()).toEqual(['PENDING', 'QUEUED']);
});

test('a worker that sends no hello counts as a public worker after a second', async () => {
  const began = performance.now();
  const fake = await connect(null);
  await t.newRun();
  await untilAssigned(fake, 1);
  expect(performance.now() - began).toBeGreaterThan(950);
});

test("a worker's report about itself is stored with limited sizes", async () => {
  const features = Array.from({ length: 60 }, (_, n) => `${n}`.repeat(200));
  const missing = [{ feature: 'cgroup', reason: 'r'.repeat(2000) }];
  const level = { backend: 'bubblewrap' as const, features, missing };
  const worker = await connect(hello(1, { version: '1.2.3', sandbox: level }));
  const disk = { free_bytes: 5_000_000_000, total_bytes: 9_000_000_000 };
  await worker.connection.message({ type: 'worker_status', data: { disk } });
  const [row] = await t.deps.db.query<{ [name: string]: unknown; sandbox: typeof level }>(
    'SELECT version, disk_free_bytes, disk_total_bytes, instance_id, sandbox FROM worker_connections',
  );
  expect(row).toMatchObject({
    version: '1.2.3',
    disk_free_bytes: disk.free_bytes,
    disk_total_bytes: disk.total_bytes,
    instance_id: expect.any(String),
  });
  expect([row?.sandbox.features.length, row?.sandbox.features[59]?.length]).toEqual([50, undefined]);
  expect(JSON.stringify(row?.sandbox).length).toBeLessThan(7000);
});

test('a worker with a problem gets no runs, and gets them again when the problem is over', async () => {
  const worker = await connect(hello(1));
  // The round of assignments that began with the hello must end first.
  await hub.dispatch();
  const disk = { free_bytes: 5, total_bytes: 9_000 };
  await worker.connection.message({
    type: 'worker_status',
    data: { disk, problem: 'its disk is full'.padEnd(1500, '.') },
  });
  const [row] = await t.deps.db.query<{ problem: string }>('SELECT problem FROM worker_connections');
  expect([row?.problem.slice(0, 16), (row?.problem.length ?? 0) <= 500]).toEqual(['its disk is full', true]);
  const runId = await t.newRun();
  await hub.dispatch();
  expect(assignments(worker)).toEqual([]);
  await worker.connection.message({ type: 'worker_status', data: { disk } });
  expect((await untilAssigned(worker, 1)).map(({ task_id }) => task_id)).toEqual([runId]);
});

test('a retry goes to a worker that did not fail before, even if that worker is asked later', async () => {
  const failing = await connect(hello(5));
  const runId = await t.newRun();
  const [first] = await untilAssigned(failing, 1);
  const other = await connect(hello(5, { instance_id: 'i2' }));
  await failing.say('task_claimed', first?.execution_id ?? '', runId);
  await failing.connection.message({
    type: 'task_failed',
    data: {
      task_id: runId,
      execution_id: first?.execution_id ?? '',
      message: 'No disk',
      failure: { phase: 'prepare', reason: 'sandbox_not_prepared' },
    },
  });
  expect((await untilAssigned(other, 1)).map(({ task_id }) => task_id)).toEqual([runId]);
  expect(assignments(failing).length).toBe(1);
});

test('a run whose approval rule names a host passes older workers and goes to the worker that knows such rules', async () => {
  const older = await connect(hello(1));
  const able = await connect(hello(1, { instance_id: 'i2', sandbox: { ...sandbox, features: ['host-rules'] } }));
  const runId = await t.newRun({ config: { approval_rules: [{ host: 'api.example.com' }] } });
  await expect.poll(() => able.sent).toContainEqual(expect.objectContaining({ type: 'task_assignment' }));
  expect(able.sent.find(({ type }) => type === 'task_assignment')?.data).toMatchObject({ task_id: runId });
  expect(older.sent.map(({ type }) => type)).not.toContain('task_assignment');
});
