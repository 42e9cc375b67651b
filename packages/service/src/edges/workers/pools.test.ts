/** Tests pools of self-hosted workers: which keys may connect with the name of a pool. */
import { randomUUIDv7 } from 'node:crypto';
import { maxPoolConnectors, maxWorkerPools } from '@runyard/contract/limits';
import { ListWorkerPoolsResponse } from '@runyard/contract/workers/worker-pools';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { newPerson, teamUidOf } from '../../../test/people.ts';
import {
  acceptedWorker,
  firstAssignment,
  type RawWorker,
  rawHello,
  receivedOf,
  startTestProcess,
} from '../../../test/process.ts';
import { openTestService } from '../../../test/service.ts';
import { workerSocketPath } from './socket.ts';

const service = await openTestService();
// During the tests, the process reads keys only when a notice announces a change.
const process = closeAtEnd(await startTestProcess(service.deps, 3_600_000));
const team = await teamUidOf(service);
const owner = await newPerson(service, team, 'member');
const other = await newPerson(service, team, 'member');
const agentKey = await service.newKey({ kind: 'agent' });

const newName = () => `pool-${randomUUIDv7()}`;

/** Connects a worker that says hello. */
async function connect(key: string, name: string): Promise<RawWorker> {
  const worker = await acceptedWorker(process.baseUrl, key, name);
  worker.say(rawHello({ worker_id: name }));
  await worker.roundTrip();
  return worker;
}

/** Returns status and body of the refusal of a connection. */
async function refusalOf(key: string, name: string): Promise<{ status?: number | undefined; detail?: string }> {
  const url = `${process.baseUrl.replace('http', 'ws')}${workerSocketPath}?worker_id=${name}`;
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } });
  return await new Promise((resolve, reject) => {
    socket.on('open', () => {
      socket.close();
      reject(new Error('the worker was accepted'));
    });
    socket.on('unexpected-response', async (_request, response) => {
      const [body] = await response.toArray();
      resolve({ status: response.statusCode, detail: JSON.parse(String(body)).detail });
    });
    socket.on('error', reject);
  });
}

const allow = (name: string, uid: string, key: string, method = 'PUT') =>
  service.request(method, `/worker-pools/${name}/connectors/${uid}`, { key });
const keyUidOf = async (key: string) =>
  (await service.deps.db.query<{ id: string }>('SELECT id FROM api_keys WHERE last_four = $1', [key.slice(-4)]))[0]
    ?.id ?? '';
const stateOf = async (runId: string) => (await service.ok<{ state: string }>('GET', `/agent/runs/${runId}`)).state;

describe('a pool that belongs to a person', () => {
  test('refuses an agent key, which also gets no runs of the pool', async () => {
    const name = newName();
    const worker = await connect(owner.key, name);
    const refused = await refusalOf(agentKey, name);
    expect(refused.status).toBe(403);
    expect(refused.detail).toContain(`the pool ${name} belongs to A member`);
    expect(refused.detail).toContain(`bin/runyard workers allow ${name} ${await keyUidOf(agentKey)}`);
    expect(await refusalOf(other.key, name)).toMatchObject({ status: 403 });
    worker.close();
    // The pool stays closed even if no worker of its owner is connected.
    expect(await refusalOf(agentKey, name)).toMatchObject({ status: 403 });
    const runId = await service.newRun({ config: { worker_host: name } }, owner.key);
    const back = await connect(owner.key, name);
    await process.dispatch();
    expect((await firstAssignment(back)).task_id).toBe(runId);
    back.close();
  });

  test('accepts the other keys of the person', async () => {
    const name = newName();
    const second = await service.request<{ key: string }>('POST', '/keys', {
      key: owner.key,
      body: { name: 'K', kind: 'personal' },
    });
    const workers = [await connect(owner.key, name), await connect(second.body.key, name)];
    for (const worker of workers) worker.close();
  });

  test('accepts people whom the owner or an administrator has added, until they are removed', async () => {
    const name = newName();
    const worker = await connect(owner.key, name);
    worker.close();
    expect((await allow(name, other.uid, other.key)).status, 'who is not the owner').toBe(403);
    expect((await allow(name, other.uid, agentKey)).status, 'an agent key').toBe(403);
    expect((await allow(name, 'nobody', owner.key)).status).toBe(404);
    expect((await allow(name, other.uid, owner.key)).status).toBe(200);
    expect((await allow(name, await keyUidOf(agentKey), service.key)).status, 'an administrator').toBe(200);
    const ofOther = await connect(other.key, name);
    const ofAgent = await connect(agentKey, name);
    const listed = await service.request('GET', '/worker-pools', { key: agentKey });
    const { pools } = ListWorkerPoolsResponse.parse(listed.body);
    expect(pools.find((each) => each.name === name)).toMatchObject({
      owner: { type: 'user', uid: owner.uid },
      connectors: [
        { principal: { type: 'user', uid: other.uid }, added_by: { uid: owner.uid } },
        { principal: { type: 'service_account' } },
      ],
    });
    expect((await allow(name, other.uid, owner.key, 'DELETE')).status).toBe(200);
    await expect.poll(() => ofOther.closedAt()).not.toBeNull();
    expect(await refusalOf(other.key, name)).toMatchObject({ status: 403 });
    expect(ofAgent.closedAt(), 'another connector stays').toBeNull();
    expect((await service.request('DELETE', `/worker-pools/${name}`, { key: other.key })).status).toBe(403);
    expect((await service.request('DELETE', `/worker-pools/${name}`, { key: owner.key })).status).toBe(200);
    await expect.poll(() => ofAgent.closedAt()).not.toBeNull();
  });

  test('assigns nothing to a connection whose right has just ended', async () => {
    const name = newName();
    (await connect(owner.key, name)).close();
    await allow(name, await keyUidOf(agentKey), owner.key);
    const worker = await connect(agentKey, name);
    // This delete sends no notice, so the connection stays open.
    await service.deps.db.query('DELETE FROM worker_pool_connectors WHERE pool = $1', [name]);
    const runId = await service.newRun({ config: { worker_host: name } }, owner.key);
    await process.dispatch();
    expect(await stateOf(runId)).toBe('QUEUED');
    expect(receivedOf(worker, 'task_assignment')).toEqual([]);
    worker.close();
  });
});

test('the pool of an agent key is closed to others until an administrator opens it', async () => {
  const name = newName();
  (await connect(agentKey, name)).close();
  expect(await refusalOf(await service.newKey({ kind: 'agent' }), name)).toMatchObject({ status: 403 });
  expect(await refusalOf(owner.key, name)).toMatchObject({ status: 403 });
  expect((await allow(name, owner.uid, owner.key)).status).toBe(403);
  expect((await allow(name, owner.uid, service.key)).status).toBe(200);
  (await connect(owner.key, name)).close();
});

test('a new pool accepts the connections of only one owner if keys of several owners connect at once', async () => {
  const name = newName();
  const keys = [owner.key, other.key, agentKey, owner.key, other.key, agentKey];
  const outcomes = await Promise.all(keys.map((key) => acceptedWorker(process.baseUrl, key, name).catch(() => null)));
  const accepted = keys.filter((_, index) => outcomes[index] !== null);
  expect(accepted).toHaveLength(2);
  expect(new Set(accepted).size).toBe(1);
  for (const worker of outcomes) worker?.close();
});

test('a pool has a limited number of people who may connect, and a team has a limited number of pools', async () => {
  const name = newName();
  (await connect(owner.key, name)).close();
  const fill = 'INSERT INTO worker_pool_connectors (team_id, pool, kind, uid, added_by_uid)';
  const numbers = 'FROM generate_series(1, $3) AS g (n)';
  await service.deps.db.query(`${fill} SELECT $1, $2, 'user', 'u' || g.n, 'u' ${numbers}`, [
    service.teamId,
    name,
    maxPoolConnectors,
  ]);
  await service.problem(409, 'PUT', `/worker-pools/${name}/connectors/${other.uid}`, { key: owner.key });
  await service.deps.db.query(
    `INSERT INTO worker_pools (team_id, name, owner_kind, owner_uid) SELECT $1, $2 || n, 'user', 'u' ${numbers}`,
    [service.otherTeamId, 'p', maxWorkerPools],
  );
  const refused = await refusalOf(service.otherKey, name);
  expect(refused).toMatchObject({ status: 409, detail: expect.stringContaining(`${maxWorkerPools} pools`) });
});
