/** Tests that the removal of a person from a team ends the person's access at once, in every service process. */
import { RemoveTeamMemberResponse } from '@runyard/contract/team/teams';
import { ListWorkerPoolsResponse } from '@runyard/contract/workers/worker-pools';
import { expect, test } from 'vitest';
import { newBrowserSession } from '../../../../test/browser-session.ts';
import { joinWorkerPool } from '../../../../test/key.ts';
import { invite, newPerson, newTeam, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { openKeyDirectory } from '../../../team/access/keys/directory.ts';
import { openKeyWatch } from '../../../team/access/keys/watch.ts';

const service = await openTestService();
const first = await teamUidOf(service);
const { db, log } = service.deps;

/** This time is so long that no regular check of the keys happens during the test, so the process depends on notifications. */
const checkEveryMs = 3_600_000;

test('a removal ends the keys, browser sessions and open streams of the person in all processes', async () => {
  const person = await newPerson(service, first, 'member');
  // The clock of this process's cache does not move, so no cache entry expires.
  const elsewhere = await openKeyDirectory(db, log, () => 0);
  expect(await elsewhere.authenticate(person.key)).not.toBeNull();
  const session = await newBrowserSession(service, person.key);
  const runId = await service.newRun({}, person.key);
  const stream = await fetch(`${service.baseUrl}/api/v1/agent/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${person.key}` },
  });
  const ended = stream.text().catch(() => 'cut');
  await service.request('DELETE', `/teams/${first}/members/${person.uid}`);
  await expect.poll(() => elsewhere.authenticate(person.key)).toBeNull();
  for (const options of [{ key: person.key }, { key: null, headers: session }])
    await service.problem(401, 'GET', `/agent/runs/${runId}`, options);
  expect(await ended).toBe('cut');
  elsewhere.close();
});

test('a person who is removed from a team loses the access with keys of other teams too, but keeps the access to these teams', async () => {
  const second = await newTeam(service);
  const person = await newPerson(service, first, 'member');
  await service.request('POST', '/team-invitations/join', {
    key: person.key,
    body: { key: await invite(service, second, 'member') },
  });
  const headers = { 'X-Team-Uid': second };
  const createdRun = await service.request<{ run_id: string }>('POST', '/agent/runs', {
    key: person.key,
    headers,
    body: { prompt: 'a' },
  });
  const stream = await fetch(`${service.baseUrl}/api/v1/agent/runs/${createdRun.body.run_id}/events`, {
    headers: { authorization: `Bearer ${person.key}`, ...headers },
  });
  const ended = stream.text().catch(() => 'cut');
  const watch = await openKeyWatch(db, log, checkEveryMs);
  // The clock of this process does not move, so its cache does not expire.
  const elsewhere = await openKeyDirectory(db, log, () => 0);
  const principal = await elsewhere.authenticate(person.key);
  if (!principal) throw new Error('the key is not known');
  const inSecond = await elsewhere.inTeam(principal, second);
  if (!inSecond) throw new Error('the person is not in the second team');
  const ends: string[] = [];
  watch.watch(inSecond, 'stream', () => void ends.push('second'));
  watch.watch(principal, 'stream', () => void ends.push('first'));

  expect((await service.request('DELETE', `/teams/${second}/members/${person.uid}`)).status).toBe(200);
  await expect.poll(() => elsewhere.inTeam(principal, second)).toBeNull();
  await expect.poll(() => ends).toEqual(['second']);
  expect(await ended).toBe('cut');
  expect((await service.request('GET', '/agent/runs', { key: person.key, headers })).status).toBe(403);
  expect((await service.request('GET', '/agent/runs', { key: person.key })).status).toBe(200);
  watch.close();
  elsewhere.close();
});

test('old keys stay invalid when a removed person is invited again', async () => {
  const second = await newTeam(service);
  const person = await newPerson(service, first, 'member');
  const join = async () =>
    await service.request('POST', '/team-invitations/join', {
      key: person.key,
      body: { key: await invite(service, second, 'member') },
    });
  await join();
  const headers = { 'X-Team-Uid': second };
  const createdKey = await service.request<{ key: string }>('POST', '/keys', {
    key: person.key,
    headers,
    body: { name: 'Second', kind: 'personal' },
  });
  expect((await service.request('GET', '/agent/runs', { key: createdKey.body.key })).status).toBe(200);
  await service.request('DELETE', `/teams/${second}/members/${person.uid}`);
  await join();
  expect((await service.request('GET', '/agent/runs', { key: person.key, headers })).status).toBe(200);
  expect((await service.request('GET', '/agent/runs', { key: createdKey.body.key })).status).toBe(401);
});

test('a worker with the key of a viewer is refused', async () => {
  const { authenticateWorker } = await import('../server/authorize.ts');
  const viewer = await newPerson(service, first, 'viewer');
  const member = await newPerson(service, first, 'member');
  expect(await authenticateWorker(service.deps.keys, `Bearer ${viewer.key}`)).toBeNull();
  expect(await authenticateWorker(service.deps.keys, `Bearer ${member.key}`)).not.toBeNull();
});

test.each([
  ['keeps', '', 200],
  ['deletes', '?agent_keys=delete&worker_pools=delete', 401],
])(
  '%s the agent keys and pools of workers of the person as requested, and lists them',
  async (_verb, query, status) => {
    const person = await newPerson(service, first, 'admin');
    const createdKey = await service.request<{ uid: string; key: string }>('POST', '/keys', {
      key: person.key,
      body: { name: 'Of the person', kind: 'agent' },
    });
    await service.request('POST', '/keys', { body: { name: 'Of somebody else', kind: 'agent' } });
    const pools = [`own${status}`, `other${status}`];
    await joinWorkerPool(db, pools[1] ?? '', service.key);
    for (const name of pools) await joinWorkerPool(db, name, person.key);
    const removed = await service.request('DELETE', `/teams/${first}/members/${person.uid}${query}`);
    expect(RemoveTeamMemberResponse.parse(removed.body)).toMatchObject({
      agent_keys: [{ uid: createdKey.body.uid, name: 'Of the person', created_by_uid: person.uid }],
      worker_pools: [pools[0]],
    });
    expect((await service.request('GET', '/agent/runs', { key: createdKey.body.key })).status).toBe(status);
    const left = ListWorkerPoolsResponse.parse((await service.request('GET', '/worker-pools')).body).pools;
    expect(left.filter(({ name }) => pools.includes(name)).map(({ name }) => name)).toEqual(
      status === 200 ? [pools[1], pools[0]] : [pools[1]],
    );
    expect(JSON.stringify(left.find(({ name }) => name === pools[1])), 'it connects no more').not.toContain(person.uid);
  },
);
