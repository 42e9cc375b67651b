/** Tests attacks in which a worker tries to act on executions of other workers. */
import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { joinWorkerPool } from '../../../test/key.ts';
import {
  acceptedWorker,
  connectRawWorker,
  firstAssignment,
  type RawWorker,
  rawHello,
  receivedOf,
  startTestProcess,
} from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();
const open: RawWorker[] = [];

const process = closeAtEnd(await startTestProcess(service.deps));
beforeEach(async () => {
  for (const worker of open.splice(0)) worker.close();
  await service.deps.db.query("UPDATE executions SET phase = 'ended' WHERE phase <> 'ended'");
});

/** Connects a worker to a pool that accepts the key. */
async function connect(key: string, name: string): Promise<RawWorker> {
  if (!name.startsWith('runyard')) await joinWorkerPool(service.deps.db, name, key);
  const worker = await acceptedWorker(process.baseUrl, key, name);
  open.push(worker);
  return worker;
}

const stateOf = async (runId: string) => (await service.ok<{ state: string }>('GET', `/agent/runs/${runId}`)).state;
const connectionsOf = (name: string) =>
  service.deps.db.query('SELECT FROM worker_connections WHERE worker_id = $1', [name]);

/** Connects a public worker that gets a run and claims it. Then cuts its connection. */
async function claimByPublicWorker(key: string, name: string, body: object = {}) {
  const worker = await connect(key, name);
  const runId = await service.newRun({ ...body });
  const { execution_id: executionId } = await firstAssignment(worker);
  worker.say({ type: 'task_claimed', data: { task_id: runId, worker_id: name } });
  await vi.waitFor(async () => expect(await stateOf(runId)).toBe('CLAIMED'), { timeout: 60_000 });
  worker.close();
  await vi.waitFor(async () => expect(await connectionsOf(name)).toEqual([]), { timeout: 60_000 });
  return { runId, executionId };
}

/** Connects a worker of Runyard that gets a run and claims it, and then cuts its connection. Returns the worker's token. */
async function claimByOwnWorker(key: string, name: string, instanceId: string, body: object = {}) {
  const worker = await connect(key, name);
  worker.say(rawHello({ worker_id: name, instance_id: instanceId }));
  const runId = await service.newRun({ ...body });
  const { execution_id: executionId } = await firstAssignment(worker);
  worker.say({ type: 'task_claimed', data: { task_id: runId, execution_id: executionId, worker_id: name } });
  await vi.waitFor(async () => expect(await stateOf(runId)).toBe('CLAIMED'), { timeout: 60_000 });
  worker.close();
  await vi.waitFor(async () => expect(await connectionsOf(name)).toEqual([]), { timeout: 60_000 });
  const [welcome] = receivedOf(worker, 'worker_welcome');
  return { runId, executionId, token: welcome?.token };
}

const failed = (runId: string, executionId?: string) => ({
  type: 'task_failed',
  data: { task_id: runId, message: 'taken over', exit_code: 1, ...(executionId && { execution_id: executionId }) },
});

/** Reports the end of an execution of another worker, and waits until the report has been handled. */
async function attack(worker: RawWorker, runId: string, executionId: string): Promise<void> {
  worker.say(failed(runId));
  worker.say(failed(runId, executionId));
  // Messages take effect in order, so the answer to this hello shows that the report has been handled.
  worker.say(rawHello({ executions: [{ task_id: 'marker', execution_id: '01a1fdad-b3cf-7c20-a9f8-51440e63fad9' }] }));
  await vi.waitFor(
    () => expect(receivedOf(worker, 'task_cancellation').map(({ task_id }) => task_id)).toContain('marker'),
    { timeout: 60_000 },
  );
}

test("a worker name that begins with runyard is refused if the key is not an operator's key", async () => {
  const member = await service.newKey({ teamId: service.otherTeamId, role: 'member' });
  for (const key of [member, service.otherKey, await service.newKey()]) {
    expect(await connectRawWorker(process.baseUrl, key, 'runyard-host')).toBe(403);
    expect(await connectRawWorker(process.baseUrl, key, 'runyard')).toBe(403);
  }
  await connect(service.key, 'runyard-other');
});

test('another team cannot take over a hosted execution with the name of its worker', async () => {
  const { runId, executionId } = await claimByOwnWorker(service.key, 'runyard-host', 'instance-1');
  const member = await service.newKey({ teamId: service.otherTeamId, role: 'member' });
  const thief = await connectRawWorker(process.baseUrl, member, 'runyard-host');
  if (typeof thief !== 'number') {
    thief.say(
      rawHello({
        worker_id: 'runyard-host',
        instance_id: 'instance-1',
        executions: [{ task_id: runId, execution_id: executionId }],
      }),
    );
    await attack(thief, runId, executionId);
    thief.close();
  }
  expect(await stateOf(runId)).toBe('CLAIMED');
});

test("another team's worker of the same name cannot take over executions of a self-hosted worker", async () => {
  const { runId, executionId } = await claimByPublicWorker(service.key, 'box', { config: { worker_host: 'box' } });
  const thief = await connect(service.otherKey, 'box');
  thief.say(
    rawHello({ worker_id: 'box', instance_id: 'x', executions: [{ task_id: runId, execution_id: executionId }] }),
  );
  await attack(thief, runId, executionId);
  expect(await stateOf(runId)).toBe('CLAIMED');

  const silent = await connect(service.otherKey, 'box');
  // A worker without a hello soon counts as a public worker. It cannot end executions of other workers.
  await vi.waitFor(
    async () => {
      silent.say(failed(runId, executionId));
      await silent.roundTrip();
      const [row] = await service.deps.db.query<{ age: number }>(
        `SELECT max(extract(epoch FROM clock_timestamp() - connected_at))::float8 AS age FROM worker_connections
         WHERE worker_id = 'box' AND instance_id IS NULL`,
      );
      expect(row?.age).toBeGreaterThan(2);
    },
    { timeout: 30_000, interval: 200 },
  );
  expect(await stateOf(runId)).toBe('CLAIMED');
});

test('a public worker that connects again with the same team, name and pool keeps its executions', async () => {
  const { runId } = await claimByPublicWorker(service.key, 'box', { config: { worker_host: 'box' } });
  const again = await connect(await service.newKey(), 'box');
  again.say(failed(runId));
  await vi.waitFor(async () => expect(await stateOf(runId)).not.toBe('CLAIMED'), { timeout: 60_000 });
});

test.each([
  ['nothing', {}],
  ['the id of the instance', { instance_id: 'instance-1', replaces: ['instance-1'] }],
  ['a made-up token', { token: 'ryw_made-up', replaced_tokens: ['ryw_made-up'] }],
])(
  "a worker of the same team, name and pool cannot continue or end another instance's execution with %s",
  async (_with, proof) => {
    const body = { config: { worker_host: 'box' } };
    const { runId, executionId } = await claimByOwnWorker(service.key, 'box', 'instance-1', body);
    const thief = await connect(await service.newKey({ role: 'member' }), 'box');
    const executions = [{ task_id: runId, execution_id: executionId }];
    thief.say(rawHello({ worker_id: 'box', instance_id: 'instance-2', executions, ...proof }));
    await attack(thief, runId, executionId);
    expect(await stateOf(runId)).toBe('CLAIMED');
    expect(
      receivedOf(thief, 'task_cancellation')[0],
      'the worker must end the sandboxes that it reports',
    ).toMatchObject({
      execution_id: executionId,
    });
  },
);

test('a worker whose hello has the token keeps its executions, and the executions of an instance that it replaces are ended', async () => {
  const body = { config: { worker_host: 'box' } };
  const { runId, executionId, token } = await claimByOwnWorker(service.key, 'box', 'instance-1', body);
  expect(token).toMatch(/^ryw_/);
  const same = await connect(service.key, 'box');
  const executions = [{ task_id: runId, execution_id: executionId }];
  same.say(rawHello({ worker_id: 'box', token, executions }));
  same.say(rawHello({ worker_id: 'box', token, executions: [...executions, { task_id: 'm', execution_id: runId }] }));
  await vi.waitFor(() => expect(receivedOf(same, 'task_cancellation')).toHaveLength(1), { timeout: 60_000 });
  expect(receivedOf(same, 'task_cancellation')[0]).toMatchObject({ task_id: 'm' });
  expect(receivedOf(same, 'worker_welcome'), 'it has a token').toEqual([]);
  same.close();

  const restarted = await connect(service.key, 'box');
  restarted.say(rawHello({ worker_id: 'box', instance_id: 'instance-2', replaced_tokens: [token] }));
  await vi.waitFor(async () => expect(await stateOf(runId)).not.toBe('CLAIMED'), { timeout: 60_000 });
});

test('a worker whose key was deleted cannot claim, reject or end executions', async () => {
  const key = await service.newKey();
  const worker = await connect(key, 'box');
  const runId = await service.newRun({ config: { worker_host: 'box' } });
  const { execution_id: executionId } = await firstAssignment(worker);
  // Suppresses the notice that ends the socket, because the test is about the check of each action.
  await service.deps.db.query(
    "DELETE FROM api_keys WHERE id = (SELECT key_id FROM worker_connections WHERE worker_id = 'box' ORDER BY id DESC LIMIT 1)",
  );
  worker.say({ type: 'task_claimed', data: { task_id: runId, execution_id: executionId, worker_id: 'box' } });
  worker.say(failed(runId, executionId));
  await vi.waitFor(() => expect(receivedOf(worker, 'task_cancellation')).not.toEqual([]), { timeout: 60_000 });
  await worker.roundTrip();
  expect(await stateOf(runId)).toBe('PENDING');
});

test("the answer to a create does not count the executions of another team's worker with the same name as used slots", async () => {
  const theirs = await connect(service.otherKey, 'crate');
  theirs.say(rawHello({ worker_id: 'crate' }));
  await service.newRun({ config: { worker_host: 'crate' } }, service.otherKey);
  await firstAssignment(theirs);
  const ours = await connect(service.key, 'crate');
  ours.say(rawHello({ worker_id: 'crate', slots: 1 }));
  await vi.waitFor(() => expect(receivedOf(ours, 'worker_welcome')).toHaveLength(1), { timeout: 60_000 });
  const created = await service.request<{ at_capacity: boolean }>('POST', '/agent/runs', {
    body: { prompt: 'Do it', config: { worker_host: 'crate' } },
  });
  expect(created.body.at_capacity).toBe(false);
});
