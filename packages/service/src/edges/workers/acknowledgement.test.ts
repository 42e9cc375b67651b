/** Tests that the service acknowledges a worker's message only after the effects of the message are committed. */
import { afterEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import {
  acceptedWorker,
  firstAssignment,
  type RawWorker,
  rawHello,
  receivedOf,
  startTestProcess,
} from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';
import type { Database } from '../../platform/store/database/database.ts';

const service = await openTestService();
const inTime = { timeout: 60_000 };
/** While this error is set, every transaction fails with it. */
let failure: Error | null = null;
const open: RawWorker[] = [];

const { db } = service.deps;
const failing: Database = {
  ...db,
  transaction: async (work) =>
    await db.transaction(async (tx) => {
      const result = await work(tx);
      if (failure) throw failure;
      return result;
    }),
};
const process = closeAtEnd(
  await startTestProcess({ ...service.deps, executionDeps: { ...service.deps.executionDeps, db: failing } }),
);
afterEach(async () => {
  failure = null;
  for (const worker of open.splice(0)) worker.close();
  await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE phase <> 'ended'");
});

async function connect(hello: object | null = {}): Promise<RawWorker> {
  const worker = await acceptedWorker(process.baseUrl, service.key, 'box');
  open.push(worker);
  if (hello) worker.say(rawHello({ worker_id: 'box', ...hello }));
  return worker;
}

const applied = (worker: RawWorker) => receivedOf(worker, 'messages_applied').map(({ seq }) => seq);
const stateOf = async (runId: string) => (await service.ok<{ state: string }>('GET', `/agent/runs/${runId}`)).state;

/** Connects a worker and assigns a run to it. Returns functions that send the worker's messages about the run. */
async function withAssignment() {
  const worker = await connect();
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  const { execution_id: executionId } = await firstAssignment(worker);
  const [welcome] = receivedOf(worker, 'worker_welcome');
  const name = { task_id: runId, execution_id: executionId };
  return {
    worker,
    runId,
    executionId,
    hello: { token: welcome?.token, executions: [name] },
    claimed: { type: 'task_claimed', seq: 1, data: { ...name, worker_id: 'box' } },
    completed: { type: 'task_completed', seq: 2, data: { ...name, message: 'done' } },
  };
}

test("the service answers a ping at once, and acknowledges a message only when the message's transaction has committed", async () => {
  const { worker, runId, claimed } = await withAssignment();
  const lock = await service.deps.db.pool.connect();
  await lock.query('BEGIN');
  await lock.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [runId]);
  worker.say(claimed);
  await worker.roundTrip();
  const isWaiting = () =>
    service.deps.db.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    );
  await vi.waitFor(async () => expect(await isWaiting()).not.toEqual([]), inTime);
  expect(applied(worker)).toEqual([]);
  await lock.query('ROLLBACK');
  lock.release();
  await vi.waitFor(() => expect(applied(worker)).toEqual([1]), inTime);
  expect(await stateOf(runId)).toBe('CLAIMED');
});

test('the service neither acknowledges a failed message nor applies later messages, and applies the failed message when the worker repeats it', async () => {
  const { worker, runId, claimed, completed, hello } = await withAssignment();
  worker.say(claimed);
  await vi.waitFor(() => expect(applied(worker)).toEqual([1]), inTime);
  failure = new Error('the disk of the database is full');
  worker.say(completed);
  worker.say({ ...claimed, seq: 3 });
  await vi.waitFor(() => expect(worker.closedAt()).not.toBeNull(), inTime);
  expect(applied(worker)).toEqual([1]);
  expect(await stateOf(runId)).toBe('CLAIMED');

  failure = null;
  const again = await connect(hello);
  again.say(completed);
  await vi.waitFor(() => expect(applied(again)).toEqual([2]), inTime);
  expect(await stateOf(runId), 'it is tried again: its agent said nothing').not.toBe('CLAIMED');
});

test("the service acknowledges a message that PostgreSQL can never store, and releases the message's execution", async () => {
  const { worker, runId, claimed, completed, hello } = await withAssignment();
  worker.say(claimed);
  await vi.waitFor(() => expect(applied(worker)).toEqual([1]), inTime);
  failure = Object.assign(new Error('unsupported Unicode escape sequence'), { code: '22P05' });
  worker.say(completed);
  await vi.waitFor(() => expect(worker.closedAt()).not.toBeNull(), inTime);
  expect(applied(worker)).toEqual([1, 2]);
  expect(await stateOf(runId)).toBe('CLAIMED');

  failure = null;
  await connect({ ...hello, executions: [] });
  await vi.waitFor(async () => expect(await stateOf(runId)).not.toBe('CLAIMED'), inTime);
});

test('the public worker gets only messages of the public protocol', async () => {
  const worker = await connect(null);
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  await firstAssignment(worker);
  worker.say({ type: 'task_claimed', data: { task_id: runId, worker_id: 'box' } });
  await vi.waitFor(async () => expect(await stateOf(runId)).toBe('CLAIMED'), inTime);
  worker.say({ type: 'task_failed', data: { task_id: runId, message: 'no', exit_code: 1 } });
  await vi.waitFor(async () => expect(await stateOf(runId)).not.toBe('CLAIMED'), inTime);
  await worker.roundTrip();
  const known = ['task_assignment', 'task_cancellation'];
  expect(worker.received.filter(({ type }) => !known.includes(type))).toEqual([]);
});

test('a service process that was counted as dead by mistake applies the message of a worker, and makes the worker connect again', async () => {
  const { worker, runId, claimed } = await withAssignment();
  worker.say(claimed);
  await vi.waitFor(() => expect(applied(worker)).toEqual([1]), inTime);
  await service.deps.db.query("DELETE FROM worker_connections WHERE worker_id = 'box'");
  worker.say({ type: 'task_failed', seq: 2, data: { task_id: runId, message: 'no', exit_code: 1 } });
  await vi.waitFor(() => expect(worker.closedAt()).not.toBeNull(), inTime);
  expect(applied(worker)).toEqual([1, 2]);
  expect(await stateOf(runId)).not.toBe('CLAIMED');
});
