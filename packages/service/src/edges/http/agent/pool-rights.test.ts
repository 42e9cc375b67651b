/** A pool of self-hosted workers is treated like stored content that a run executes, such as an environment: a run depends on who owns
 * the pool and whether the run's executor accepted it, because the pool's machines see the secrets of the run. */
import { randomUUIDv7 } from 'node:crypto';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunItem } from '@runyard/contract/runs/runs';
import { expect, test } from 'vitest';
import { credentialsOf } from '../../../../test/credentials.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { enterPool } from '../../../team/access/worker-pools/enter.ts';
import { deletePool } from '../../../team/access/worker-pools/pools.ts';

const service = await openTestService();
const { db, keys } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const [owner, colleague] = [await newPerson(service, team, 'member'), await newPerson(service, team, 'member')];
const agentKey = await service.newKey({ kind: 'agent' });
for (const [name, scope] of [
  ['MINE', 'personal'],
  ['SHARED', 'team'],
]) {
  const body = { value: `${name} ${randomUUIDv7()}`, scope };
  const key = scope === 'team' ? service.key : owner.key;
  await service.ok('PUT', `/secrets/${name}`, { key, body });
}

const principalOf = async (key: string) => {
  const principal = await keys.authenticate(key);
  if (!principal) throw new Error('the key is unknown');
  return principal;
};
/** Enters a pool in the same way as a connection of a worker. Default: a pool with a new name. */
async function connect(key: string, name = `pool-${randomUUIDv7()}`): Promise<string> {
  expect(await enterPool(db, await principalOf(key), name)).toEqual({ kind: 'entered' });
  return name;
}
const runIn = (pool: string, secrets: readonly string[] = ['MINE'], more: object = {}) => ({
  prompt: 'a',
  config: { worker_host: pool, secrets: secrets.map((name) => ({ name })), ...more },
});
/** Requests the task of a run in the same way as the run's agent. */
async function resolve(runId: string) {
  const { runToken, executionId } = await service.claimRun(runId);
  const credentials = await credentialsOf(db, executionId);
  const task = await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  return {
    status: task.status,
    names: (task.body.secrets ?? []).map(({ name }) => name),
    text: task.text,
    credentials,
  };
}
const itemOf = async (runId: string) => await service.ok<RunItem>('GET', `/agent/runs/${runId}`);
const uidOf = (pool: string) => `${pool}@${service.teamId}`;

test("a run has no personal secret in a colleague's pool until its executor accepts the pool", async () => {
  const pool = await connect(colleague.key);
  const refused = await service.problem(403, 'POST', '/agent/runs', { key: owner.key, body: runIn(pool) });
  expect(refused.error_code).toBe('not_authorized');
  for (const part of ['secret MINE', `revision 1 of the worker pool ${pool} has machines of`, colleague.uid])
    expect(refused.detail).toContain(part);
  expect(refused.detail).toContain(`bin/runyard accept worker_pool ${uidOf(pool)}`);

  const uid = uidOf(pool);
  const waiting = await service.request('GET', `/acceptances?kind=worker_pool&uid=${uid}`, { key: owner.key });
  expect(waiting.body).toMatchObject({
    waiting: [{ uid, name: pool, revision: 1, author: { uid: colleague.uid }, difference: [{}, {}] }],
  });
  const body = { kind: 'worker_pool', uid, revision: 1 };
  await service.ok('POST', '/acceptances', { key: owner.key, body });
  const runId = await service.newRun(runIn(pool), owner.key);
  expect((await itemOf(runId)).contents).toMatchObject([{ kind: 'worker_pool', uid, revision: 1, is_accepted: true }]);
  expect(await resolve(runId)).toMatchObject({ status: 200, names: ['MINE'], credentials: 'personal' });

  // The acceptance does not cover the next owner of the pool's name.
  const queued = await service.newRun(runIn(pool), owner.key);
  expect(await deletePool(db, await principalOf(colleague.key), pool)).toBe('deleted');
  await connect(agentKey, pool);
  expect(await resolve(queued)).toMatchObject({ names: [], credentials: 'team' });
  const again = await service.problem(403, 'POST', `/agent/runs/${runId}/rerun`, { key: owner.key, body: {} });
  expect(again.detail).toContain('revision 2 of the worker pool');
});

test('runs that name a pool get no secrets if an agent key is the first to connect to this pool', async () => {
  const name = `pool-${randomUUIDv7()}`;
  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    key: owner.key,
    body: { config: { name: 'E', secrets: [{ name: 'SHARED' }] } },
  });
  const inEnvironment = { environment_id: environment.body.uid };
  const [personal, ofTeam, left] = [
    await service.newRun(runIn(name), owner.key),
    await service.newRun(runIn(name, ['SHARED']), owner.key),
    await service.newRun(runIn(name, [], inEnvironment), owner.key),
  ];
  await connect(agentKey, name);
  for (const runId of [personal, ofTeam]) {
    expect(await resolve(runId)).toMatchObject({ status: 401, names: [], credentials: 'team' });
    const message = (await itemOf(runId)).status_message?.message;
    for (const part of [`worker pool ${name} has machines of`, `accept worker_pool ${uidOf(name)}`, `rerun ${runId}`])
      expect(message).toContain(part);
  }
  // A secret that only the environment names is not granted.
  expect(await resolve(left)).toMatchObject({ status: 200, names: [] });
});

test('a change of the owner after the assignment gives no secret to the worker that executes the run', async () => {
  const name = await connect(agentKey);
  const runId = await service.newRun(runIn(name, []), owner.key);
  await db.query(`UPDATE run_requests SET contents = '[]' WHERE run_id = $1`, [runId]);
  const { executionId } = await service.claimRun(runId);
  await db.query('UPDATE worker_pools SET owner_kind = $2, owner_uid = $3 WHERE name = $1', [name, 'user', owner.uid]);
  expect(await credentialsOf(db, executionId)).toBe('team');
});

test.each([
  ['personal secrets in a pool of the executor', () => connect(owner.key), ['MINE']],
  ['secrets of the team in the pool of a colleague', () => connect(colleague.key), ['SHARED']],
  ["all secrets in the operator's pool", async () => 'warp', ['MINE', 'SHARED']],
])('a run gets %s', async (_what, pool, names) => {
  const runId = await service.newRun(runIn(await pool(), names), owner.key);
  expect(await itemOf(runId)).not.toHaveProperty('withheld');
  expect(await resolve(runId)).toMatchObject({ status: 200, names });
});

test('a run gets personal secrets if its executor is the first to connect to the pool after the creation of the run', async () => {
  const name = `pool-${randomUUIDv7()}`;
  const runId = await service.newRun(runIn(name), owner.key);
  await connect(owner.key, name);
  expect(await resolve(runId)).toMatchObject({ status: 200, names: ['MINE'], credentials: 'personal' });
});
