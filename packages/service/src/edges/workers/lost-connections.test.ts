import { randomUUIDv7 } from 'node:crypto';
import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey } from '../../../test/key.ts';
import { beatServiceInstance } from '../../runs/executions/lease/heartbeat.ts';
import { type Hub, openHub } from './hub.ts';
import { dropConnectionsOfDeadServices } from './lost-connections.ts';

const silentSeconds = 20;
const slow = randomUUIDv7();
let t: TestExecutions;
let hub: Hub;
let keyId: string;

beforeEach(async () => {
  // Leases so short that each ping or message renews them.
  t = closeAtEnd(await openTestExecutions({ timing: { leaseSeconds: 0.001 } }));
  await beatServiceInstance(t.deps, slow);
  keyId = await insertWorkerKey(t.deps.db, t.teamId);
  hub = closeAtEnd(openHub(t.deps, { serviceInstanceId: slow }));
});

const connections = async () =>
  (await t.deps.db.query<{ id: string }>('SELECT id FROM worker_connections')).map(({ id }) => id);
const fallSilent = () =>
  t.deps.db.pool.query("UPDATE service_instances SET seen_at = now() - interval '1 minute' WHERE id = $1", [slow]);

test('a process keeps its own connections, even if its own heartbeat is late', async () => {
  await hub.connect({ workerId: 'runyard-a', teamId: null, keyId, send: () => {}, end: () => {} });
  await fallSilent();
  await dropConnectionsOfDeadServices(t.deps, slow, silentSeconds);
  expect(await connections()).toHaveLength(1);
  await dropConnectionsOfDeadServices(t.deps, randomUUIDv7(), silentSeconds);
  expect(await connections(), 'another process does').toEqual([]);
});

test('the hub records the end of a connection as soon as the database answers again', async () => {
  let isDown = false;
  const query: typeof t.deps.db.query = async (...asked: Parameters<typeof t.deps.db.query>) => {
    if (isDown) throw new Error('The database is down.');
    return await t.deps.db.query(...asked);
  };
  const own = openHub({ ...t.deps, db: { ...t.deps.db, query } }, { serviceInstanceId: slow });
  const connection = await own.connect({ workerId: 'box', teamId: t.teamId, keyId, send: () => {}, end: () => {} });
  isDown = true;
  await expect(connection.closed()).rejects.toThrow('The database is down.');
  isDown = false;
  expect(await connections()).toHaveLength(1);
  await own.recordLosses();
  expect(await connections()).toEqual([]);
  await own.close();
});

test('a worker must connect again at its next ping if another process counted the process of its connection as dead', async () => {
  const end = vi.fn();
  const connection = await hub.connect({ workerId: 'runyard-a', teamId: null, keyId, send: () => {}, end });
  const renewed = async () =>
    (await t.deps.db.query('SELECT FROM worker_connections WHERE last_seen_at > connected_at')).length === 1;
  // Repeat the ping, because the first moment after the connection is too early for a renewal.
  await vi.waitFor(
    async () => {
      connection.alive();
      expect(await renewed()).toBe(true);
    },
    { timeout: 60_000 },
  );
  expect(end).not.toHaveBeenCalled();
  await fallSilent();
  await dropConnectionsOfDeadServices(t.deps, randomUUIDv7(), silentSeconds);
  await vi.waitFor(
    () => {
      connection.alive();
      expect(end).toHaveBeenCalled();
    },
    { timeout: 60_000 },
  );
  await connection.closed();
});
