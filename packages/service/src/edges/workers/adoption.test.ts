/** Tests the leases of executions whose sandboxes continue without their worker. */
import type { ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey } from '../../../test/key.ts';
import { reconcile } from '../../runs/executions/reconcile/reconcile.ts';
import { type Hub, openHub } from './hub.ts';

const graceSeconds = 5;
let t: TestExecutions;
let hub: Hub;
let keyId: string;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions({ timing: { reconnectGraceSeconds: graceSeconds } }));
  keyId = await insertWorkerKey(t.deps.db, t.teamId);
  hub = closeAtEnd(openHub(t.deps, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' }));
});

type HelloMembers = Partial<Extract<WorkerMessage, { type: 'worker_hello' }>['data']>;

async function connect(more: HelloMembers) {
  const sent: ServiceMessage[] = [];
  const send = (message: ServiceMessage) => void sent.push(message);
  const connection = await hub.connect({ workerId: 'runyard-a', teamId: null, keyId, send, end: () => {} });
  const sandbox = { backend: 'bubblewrap' as const, features: [], missing: [] };
  await connection.message({
    type: 'worker_hello',
    data: { worker_id: 'runyard-a', instance_id: 'i', slots: 1, executions: [], sandbox, draining: false, ...more },
  });
  return { sent, connection };
}

/** Connects a worker of Runyard that claims a run, and then cuts its connection. */
async function claimAndLose(adoptSeconds: number | undefined) {
  const worker = await connect(adoptSeconds === undefined ? {} : { adopt_seconds: adoptSeconds });
  await t.newRun();
  const assigned = await vi.waitFor(
    () => worker.sent.find((message) => message.type === 'task_assignment')?.data ?? expect.fail('no assignment'),
    { timeout: 60_000 },
  );
  const names = { task_id: assigned.task_id, execution_id: assigned.execution_id };
  await worker.connection.message({ type: 'task_claimed', data: { ...names, worker_id: 'runyard-a' } });
  await worker.connection.closed();
  const welcome = worker.sent.find((message) => message.type === 'worker_welcome');
  return { names, token: welcome?.data.token ?? expect.fail('no token') };
}

const leaseSeconds = async (): Promise<number> => {
  const text =
    'SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 AS rest FROM executions ORDER BY number';
  const { rows } = await t.deps.db.pool.query<{ rest: number }>(text);
  return rows[0]?.rest ?? Number.NaN;
};
const stateNow = async () => (await t.deps.db.pool.query('SELECT state FROM runs')).rows[0]?.state;

test.each([
  [undefined, 0, graceSeconds],
  [0, 0, graceSeconds],
  [120, 120, 140],
])(
  'executions of a lost worker with adopt_seconds %s can be adopted for more than %i and at most %i seconds',
  async (adopt, least, most) => {
    await claimAndLose(adopt);
    const rest = await leaseSeconds();
    expect(rest).toBeGreaterThan(least);
    expect(rest).toBeLessThanOrEqual(most);
  },
);

test("the service gives the executions of a worker to the next process that shows the worker's token", async () => {
  const { names, token } = await claimAndLose(120);
  const next = await connect({ token, executions: [names], adopt_seconds: 120 });
  expect(next.sent.map(({ type }) => type)).not.toContain('task_cancellation');
  await next.connection.message({ type: 'task_completed', data: { ...names, message: 'done' } });
  // The sandbox ended before its agent had started, so the run is tried again, possibly at once.
  expect(await stateNow()).toMatch(/^(QUEUED|PENDING)$/);
});

test('a process with the name of a worker but without its token gets no executions, and gets an order to end the sandbox', async () => {
  const { names } = await claimAndLose(120);
  const thief = await connect({ executions: [names], adopt_seconds: 120 });
  expect(thief.sent.find(({ type }) => type === 'task_cancellation')?.data).toMatchObject(names);
  expect(await stateNow()).toBe('CLAIMED');
});

test('an execution is lost at once when the next process of the worker does not list it', async () => {
  const { token } = await claimAndLose(120);
  await connect({ token, adopt_seconds: 120 });
  // The service tries the run again: the run is queued, or already assigned to this process.
  expect(await stateNow()).toMatch(/^(QUEUED|PENDING)$/);
});

test('an execution is lost when no process has adopted it in time', async () => {
  await claimAndLose(120);
  await reconcile(t.deps);
  expect(await stateNow()).toBe('CLAIMED');
  await t.deps.db.pool.query("UPDATE executions SET lease_until = clock_timestamp() - interval '1 second'");
  await reconcile(t.deps);
  expect(await stateNow()).toBe('QUEUED');
});
