/** A change of one text of a content makes its sender the author of this text only, and accepts no other text. */
import { randomUUIDv7 } from 'node:crypto';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { enterPool } from '../../../team/access/worker-pools/enter.ts';

const service = await openTestService();
const { db, keys } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const [ada, bob, cy] = [
  await newPerson(service, team, 'owner'),
  await newPerson(service, team, 'admin'),
  await newPerson(service, team, 'member'),
];
const send = async <T = { uid: string; id: string; key: string }>(
  method: string,
  path: string,
  key: string,
  body: object = {},
) => {
  const answer = await service.request<T>(method, path, { key, body });
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300);
  return answer.body;
};
const put = async (name: string, scope: string, key: string) => {
  const value = `${name} ${scope} ${randomUUIDv7()}`;
  await send('PUT', `/secrets/${name}`, key, { value, scope });
  return value;
};
const mine = await put('MINE', 'personal', ada.key);
await put('MINE', 'personal', bob.key);
const shared = await put('SHARED', 'team', service.key);
const secrets = (...names: string[]) => names.map((name) => ({ name }));
const valuesOf = async (runId: string) => {
  const { runToken } = await service.claimRun(runId);
  const task = await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  return (task.body.secrets ?? []).map(({ value }) => value);
};
const start = (key: string, body: object) => service.request<{ run_id: string }>('POST', '/agent/runs', { key, body });
const accept = (key: string, kind: string, uid: string, revision: number) =>
  send('POST', '/acceptances', key, { kind, uid, revision });
const waiting = async (key: string, kind: string, uid: string) =>
  (await send<{ waiting: WaitingContent[] }>('GET', `/acceptances?kind=${kind}&uid=${uid}`, key)).waiting;
const environment = async (key: string, members: object) =>
  (await send('POST', '/agent/environments', key, { config: { name: 'E', ...members } })).uid;
const edit = (uid: string, key: string, members: object) =>
  send('PUT', `/agent/environments/${uid}`, key, { config: { name: 'E', ...members } });

describe('a partial edit does not accept the texts of others', () => {
  test('a changed description of an identity does not let its keys use secrets of the editor', async () => {
    const { uid } = await send('POST', '/agent/identities', ada.key, { name: 'I', on_behalf_of_enabled: true });
    const { key } = await send('POST', '/keys', service.key, { name: 'K', kind: 'agent', agent_uid: uid });
    await send('PUT', `/agent/identities/${uid}`, bob.key, { description: 'changed' });
    const body = { prompt: 'print all', on_behalf_of: bob.uid, config: { secrets: secrets('MINE') } };
    const refused = await service.problem(403, 'POST', '/agent/runs', { key, body });
    expect(refused.detail).toContain(`accept agent_identity ${uid}`);
  });

  test("a changed name of an MCP server does not accept the server's command", async () => {
    const { id } = await send('POST', '/agent/mcp-servers', cy.key, {
      name: 'S',
      command: 'evil',
      args: ['--all'],
      env: { ONE: 'value 1', TWO: 'value 2' },
    });
    const body = { prompt: 'a', config: { mcp_servers: { s: { warp_id: id } }, secrets: secrets('MINE') } };
    for (const change of [{ name: 'T' }, { name: 'T', env: { ONE: 'value 1', TWO: 'another' } }]) {
      await send('PATCH', `/agent/mcp-servers/${id}`, ada.key, change);
      const refused = await service.problem(403, 'POST', '/agent/runs', { key: ada.key, body });
      expect(refused.detail).toContain(cy.uid);
    }
    const [{ texts } = { texts: {} }] = await db.query<{ texts: Record<string, { authors: { uid: string }[] }> }>(
      `SELECT texts FROM content_revisions WHERE kind = 'mcp_server' AND uid = $1 AND superseded_at IS NULL`,
      [id],
    );
    const authors = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, text.authors.map(({ uid }) => uid)]),
    );
    expect(authors).toMatchObject({
      '["command"]': [cy.uid],
      '["env", "ONE"]': [cy.uid],
      '["env", "TWO"]': [ada.uid, cy.uid],
    });
  });

  test('a change of the model of a schedule makes nobody else its executor or the author of its prompt', async () => {
    const { id } = await send('POST', '/agent/schedules', bob.key, {
      name: 'Nightly',
      cron_schedule: '@every 1h',
      prompt: 'print all',
      agent_config: { secrets: secrets('MINE') },
    });
    const changed = await send<ScheduledAgentItem>('PUT', `/agent/schedules/${id}`, ada.key, {
      name: 'Nightly',
      cron_schedule: '@every 1h',
      enabled: true,
      prompt: 'print all',
      agent_config: { secrets: secrets('MINE'), model_id: 'runbook' },
    });
    expect(changed).toMatchObject({ executor: { uid: bob.uid }, updated_by: { uid: ada.uid } });
    // Bob executes the schedule, so he must accept the model of Ada. Ada may not start it with her secret before she accepts his prompt.
    expect(await waiting(bob.key, 'schedule', id)).toMatchObject([
      { revision: 2, authors: [{ uid: ada.uid }], difference: [{ path: 'agent_config.model_id', after: 'runbook' }] },
    ]);
    const byHand = await service.problem(403, 'POST', `/agent/schedules/${id}/run`, { key: ada.key, body: {} });
    expect(byHand.detail).toContain(bob.uid);

    const taken = { ...changed, executor_uid: 'me', enabled: true };
    expect(await send('PUT', `/agent/schedules/${id}`, ada.key, taken)).toMatchObject({ executor: { uid: ada.uid } });
    for (const executor_uid of [bob.uid, 'nobody'])
      await service.problem(403, 'PUT', `/agent/schedules/${id}`, { key: ada.key, body: { ...taken, executor_uid } });
  });
});

test('a changed command keeps its earlier author until its sender accepts the revision', async () => {
  const uid = await environment(cy.key, { setup_commands: ['curl evil'], working_directory: 'w' });
  await edit(uid, ada.key, { setup_commands: ['curl evil # comment'], working_directory: 'w' });
  const body = { prompt: 'a', config: { environment_id: uid, secrets: secrets('MINE') } };
  expect((await start(ada.key, body)).status).toBe(403);
  await accept(ada.key, 'environment', uid, 2);
  expect(await valuesOf((await start(ada.key, body)).body.run_id)).toEqual([mine]);
  // She is now the only author of the texts that she changes next, so this change needs no acceptance.
  await edit(uid, ada.key, { setup_commands: ['curl other'], working_directory: 'w' });
  expect(await valuesOf((await start(ada.key, body)).body.run_id)).toEqual([mine]);
});

test.each([
  ['removes a protected branch', { protected_branches: ['main', 'release'] }, { protected_branches: ['main'] }],
  ['removes the restriction of the network', { network: { allowed_hosts: ['a.example'] } }, {}],
  ['protects no branch', {}, { protected_branches: [] }],
  ['changes the order of commands', { setup_commands: ['a', 'b'] }, { setup_commands: ['b', 'a'] }],
])('who %s is an author', async (_what, before, after) => {
  const uid = await environment(ada.key, { working_directory: 'w', ...before });
  await edit(uid, cy.key, { working_directory: 'w', ...after });
  const body = { prompt: 'a', config: { environment_id: uid, secrets: secrets('MINE') } };
  expect((await service.problem(403, 'POST', '/agent/runs', { key: ada.key, body })).detail).toContain(cy.uid);
});

test('an acceptance of one member brings the rights of the team back for all, and personal rights only for this member', async () => {
  const leaver = await newPerson(service, team, 'member');
  const uid = await environment(leaver.key, { setup_commands: ['true'], secrets: secrets('SHARED') });
  await send('DELETE', `/teams/${team}/members/${leaver.uid}`, service.key);
  const inIt = (...names: string[]) => ({
    prompt: 'a',
    config: { environment_id: uid, ...(names.length > 0 ? { secrets: secrets(...names) } : {}) },
  });
  const identity = await send('POST', '/agent/identities', service.key, { name: 'J', secrets: secrets('SHARED') });
  const agent = await send('POST', '/keys', service.key, { name: 'K', kind: 'agent', agent_uid: identity.uid });
  expect(await valuesOf((await start(bob.key, inIt())).body.run_id)).toEqual([]);
  expect(await waiting(bob.key, 'environment', uid)).toHaveLength(1);
  await accept(cy.key, 'environment', uid, 1);
  expect(await valuesOf((await start(bob.key, inIt())).body.run_id)).toEqual([shared]);
  expect(await valuesOf((await start(agent.key, inIt('SHARED'))).body.run_id)).toEqual([shared]);
  expect((await start(bob.key, inIt('MINE'))).status).toBe(403);
  // A member without personal rights need not accept anything now.
  const all = await send<{ waiting: WaitingContent[] }>('GET', '/acceptances', service.key);
  expect(all.waiting.map((each) => each.uid)).not.toContain(uid);
});

test('a connector that an administrator adds gets no personal secret before the executor accepts it', async () => {
  const name = `pool-${randomUUIDv7()}`;
  const principal = await keys.authenticate(ada.key);
  if (!principal) throw new Error('the key is unknown');
  expect(await enterPool(db, principal, name)).toEqual({ kind: 'entered' });
  const body = { prompt: 'a', config: { worker_host: name, secrets: secrets('MINE') } };
  const queued = (await start(ada.key, body)).body.run_id;
  await send('PUT', `/worker-pools/${name}/connectors/${cy.uid}`, bob.key);
  const refused = await service.problem(403, 'POST', '/agent/runs', { key: ada.key, body });
  expect(refused.detail).toContain(bob.uid);
  expect(await valuesOf(queued)).toEqual([]);
  const uid = `${name}@${service.teamId}`;
  expect(await waiting(ada.key, 'worker_pool', uid)).toMatchObject([
    { authors: [{ uid: bob.uid }], difference: [{ path: 'connectors', after: [{ uid: cy.uid }] }] },
  ]);
  await accept(ada.key, 'worker_pool', uid, 2);
  expect(await valuesOf((await start(ada.key, body)).body.run_id)).toEqual([mine]);
  // Her own connectors need no acceptance.
  await send('PUT', `/worker-pools/${name}/connectors/${bob.uid}`, ada.key);
  expect(await valuesOf((await start(ada.key, body)).body.run_id)).toEqual([mine]);
});

test('an administrator takes over a pool, and personal rights of others wait for their acceptance', async () => {
  const name = `pool-${randomUUIDv7()}`;
  const principal = await keys.authenticate(ada.key);
  if (!principal) throw new Error('the key is unknown');
  await enterPool(db, principal, name);
  const taken = await send<{ owner: { uid: string }; waiting: { people: { uid: string }[] } }>(
    'PUT',
    `/worker-pools/${name}/owner`,
    bob.key,
  );
  expect(taken).toMatchObject({ owner: { uid: bob.uid }, waiting: { people: [{ uid: ada.uid }] } });
  expect(await enterPool(db, principal, name)).toMatchObject({ kind: 'not_allowed' });
  const body = { prompt: 'a', config: { worker_host: name, secrets: secrets('MINE') } };
  expect((await service.problem(403, 'POST', '/agent/runs', { key: ada.key, body })).detail).toContain(bob.uid);
  await service.problem(404, 'PUT', '/worker-pools/no-such-pool/owner', { key: bob.key });
  await service.problem(403, 'PUT', `/worker-pools/${name}/owner`, { key: cy.key });
});

test('an edit of an automation keeps its executor, and only the caller or an identity that he may edit can take it over', async () => {
  const factory = await send('POST', '/factory', cy.key, { name: 'F' });
  const members = { name: 'A', triggers: [{ provider: 'github', event: 'push' }] };
  const put = (key: string, body: object) =>
    send<{ executor: { uid: string }; updated_by: { uid: string } }>(
      'PUT',
      `/factory/${factory.uid}/automations/${uid}`,
      key,
      { ...members, ...body },
    );
  const { uid } = await send('POST', `/factory/${factory.uid}/automations`, cy.key, { ...members, prompt: 'a' });
  expect(await put(bob.key, { prompt: 'b' })).toMatchObject({
    executor: { uid: cy.uid },
    updated_by: { uid: bob.uid },
  });
  expect(await waiting(cy.key, 'automation', uid)).toMatchObject([{ authors: [{ uid: bob.uid }] }]);
  const identity = await send('POST', '/agent/identities', service.key, { name: 'Runner' });
  const toIdentity = { prompt: 'b', executor_uid: identity.uid };
  const path = `/factory/${factory.uid}/automations/${uid}`;
  await service.problem(403, 'PUT', path, { key: cy.key, body: { ...members, ...toIdentity } });
  expect(await put(bob.key, toIdentity)).toMatchObject({ executor: { uid: identity.uid } });
  expect(await put(cy.key, { prompt: 'b', executor_uid: cy.uid })).toMatchObject({ executor: { uid: cy.uid } });
  const created = { ...members, name: 'B', prompt: 'b', executor_uid: bob.uid };
  await service.problem(403, 'POST', `/factory/${factory.uid}/automations`, { key: cy.key, body: created });
});
