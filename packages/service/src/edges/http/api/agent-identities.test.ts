import type { RunItem } from '@runyard/contract/runs/runs';
import { AgentIdentity, ListAgentIdentitiesResponse } from '@runyard/contract/team/identities';
import { describe, expect, test } from 'vitest';
import { baseFiles, testDefinitions } from '../../../../test/definitions.ts';
import { admitGuest, newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { openKeyDirectory } from '../../../team/access/keys/directory.ts';

const service = await openTestService();
const team = await teamUidOf(service);
const path = '/agent/identities';

const create = async (body: object, key?: string): Promise<AgentIdentity> =>
  AgentIdentity.parse(await service.ok('POST', path, { body, ...(key ? { key } : {}) }));
/** Sets a secret of the team that no service account may use. */
const setSecret = (name: string) =>
  service.request('PUT', `/secrets/${name}`, { body: { value: `the value of ${name}`, scope: 'team', agents: [] } });
const keyOf = async (identity: AgentIdentity, key?: string) => {
  const body = { name: 'Agent key', kind: 'agent', agent_uid: identity.uid };
  return await service.request<{ key: string; uid: string }>('POST', '/keys', { body, ...(key ? { key } : {}) });
};
const runOf = async (body: object, key?: string) => {
  const createdRun = await service.ok<{ run_id: string }>('POST', '/agent/runs', {
    body: { prompt: 'a', ...body },
    ...(key ? { key } : {}),
  });
  return await service.ok<Record<string, unknown>>('GET', `/agent/runs/${createdRun.run_id}`);
};

describe('an agent identity', () => {
  test('is created, read, listed, changed and deleted', async () => {
    await setSecret('TOKEN');
    const made = await create({ name: 'Release', description: 'Releases', base_model: 'runbook' });
    expect(made).toMatchObject({
      name: 'Release',
      available: true,
      skills: [],
      secrets: [],
      on_behalf_of_enabled: false,
    });
    expect(await service.ok('GET', `${path}/${made.uid}`)).toEqual(made);
    const changed = await service.request('PUT', `${path}/${made.uid}`, {
      body: { description: '', base_model: null, skills: ['a/b:c'], secrets: [{ name: 'TOKEN' }] },
    });
    const { description: _description, updated_at: _updated, ...kept } = made;
    expect(changed.body).toMatchObject({ ...kept, skills: ['a/b:c'], secrets: [{ name: 'TOKEN' }] });
    expect(changed.body).not.toHaveProperty('description');
    const { agents } = ListAgentIdentitiesResponse.parse(await service.ok('GET', path));
    expect(agents).toContainEqual(changed.body);
    expect(await service.ok('DELETE', `${path}/${made.uid}`)).toEqual({ success: true });
    await service.problem(404, 'GET', `${path}/${made.uid}`);
  });

  test.each([
    ['an unknown model', { base_model: 'nobody/none' }, 'base_model'],
    ['no name', { name: ' ' }, 'name'],
    ['a skill of another form', { skills: ['a/b:c', 'nothing'] }, 'skills'],
    ['a repository that its environment does not have', { skills: ['b:c'] }, 'skills'],
    ['a secret that the team does not have', { secrets: [{ name: 'MISSING' }] }, 'secrets'],
    ['an unknown harness', { harness: { type: 'cluade' } }, 'harness.type'],
    ['an unknown harness in the older form', { base_harness: 'cluade' }, 'harness.type'],
    ['two harnesses', { harness: { type: 'codex' }, base_harness: 'claude' }, 'base_harness'],
    ['two models', { base_model: 'runbook', harness: { model_id: 'runbook' } }, 'harness.model_id'],
    ['the name of no worker', { worker_host: 'a b' }, 'worker_host'],
    ['the factory of a definition', { factory_uid: 'A'.repeat(22) }, 'factory_uid'],
    ['an MCP server at no address', { mcp_servers: { docs: { url: 'file:///etc' } } }, 'mcp_servers.docs.url'],
    ['an MCP server of two kinds', { mcp_servers: { docs: { url: 'https://a', command: 'b' } } }, 'mcp_servers.docs'],
    ['more than an identity may have', { mcp_servers: { a: { command: 'x'.repeat(300_000) } } }, 'mcp_servers'],
  ])('is refused with %s', async (_, body, member) => {
    const problem = await service.problem(400, 'POST', path, { body: { name: 'I', ...body } });
    expect(problem.errors?.map((error) => error.path)).toEqual([member]);
  });

  test('is refused with the environment of another team as with an unknown one', async () => {
    const theirs = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'Theirs' } },
      key: service.otherKey,
    });
    const own = await create({ name: 'Own' });
    for (const environment_id of ['A'.repeat(22), theirs.body.uid]) {
      const made = await service.problem(403, 'POST', path, { body: { name: 'I', environment_id } });
      const changed = await service.problem(403, 'PUT', `${path}/${own.uid}`, { body: { environment_id } });
      for (const { error_code, detail } of [made, changed])
        expect([error_code, detail]).toEqual(['not_authorized', expect.stringMatching(/^environment_id: there is no/)]);
    }
  });

  test('keeps prompt, harness, MCP servers and worker until a change replaces or clears them', async () => {
    const members = {
      prompt: 'Be brief.',
      harness: { type: 'oz', reasoning_level: 'high' },
      mcp_servers: { docs: { url: 'https://mcp.example/docs', headers: { A: 'b' } } },
      worker_host: 'warp',
    };
    const made = await create({ name: 'Full', ...members });
    const sealed = { docs: { url: 'https://mcp.example/docs', headers: { A: expect.stringMatching(/^sealed:/) } } };
    expect(made).toMatchObject({ ...members, mcp_servers: sealed, base_harness: 'oz', available: true });
    const put = async (body: object) => await service.ok('PUT', `${path}/${made.uid}`, { body });
    const nothing = { prompt: null, harness: null, base_harness: null, mcp_servers: null, worker_host: null };
    expect(await put(nothing)).toMatchObject({ ...members, mcp_servers: sealed });
    expect(await put({ base_harness: 'builtin', mcp_servers: { own: { command: 'tool' } } })).toMatchObject({
      prompt: 'Be brief.',
      harness: { type: 'builtin' },
      mcp_servers: { own: { command: 'tool' } },
    });
    const emptied = await put({ prompt: '', base_harness: '', mcp_servers: {}, worker_host: '' });
    for (const member of [...Object.keys(members), 'base_harness']) expect(emptied).not.toHaveProperty(member);
  });

  test('keeps its runner and credential strategy until a change clears them, and its runs are executed there', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'Runner' } },
    });
    const members = { default_runner_uid: environment.body.uid, credential_strategy: 'EXECUTOR' };
    const made = await create({ name: 'Runner', ...members });
    expect(made).toMatchObject({ ...members, available: true });
    const put = async (body: object) => await service.ok('PUT', `${path}/${made.uid}`, { body });
    for (const same of [{}, { default_runner_uid: null, credential_strategy: null }])
      expect(await put(same)).toMatchObject(members);
    const run = await runOf({ agent_identity_uid: made.uid });
    expect(run).toMatchObject({
      agent_config: { environment_id: environment.body.uid, runner_id: environment.body.uid },
    });
    const other = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'O' } },
    });
    const own = await runOf({ agent_identity_uid: made.uid, config: { environment_id: other.body.uid } });
    expect(own).toMatchObject({ agent_config: { environment_id: other.body.uid } });
    const emptied = await put({ default_runner_uid: '', credential_strategy: '' });
    expect(emptied).toMatchObject({ default_runner_uid: '' });
    expect(emptied).not.toHaveProperty('credential_strategy');
  });

  test.each([
    ['default_runner_uid', 'no-such-pool', 400],
    ['default_runner_uid', 'a'.repeat(22), 403],
    ['credential_strategy', 'CREATOR', 400],
    ['inference_providers', { aws: { role_arn: 'arn:x' } }, 400],
    ['harness_auth_secrets', { claude_auth_secret_name: 'X' }, 400],
    ['memory', { auto_memory: { enabled: true } }, 400],
    ['memory', { attached_stores: ['x'] }, 400],
  ])('is refused with %s %o', async (member, value, status) => {
    const own = await create({ name: 'Refuses' });
    for (const [method, at] of [
      ['POST', path],
      ['PUT', `${path}/${own.uid}`],
    ] as const) {
      const { detail } = await service.problem(status, method, at, { body: { name: 'I', [member]: value } });
      expect(detail).toContain(member);
    }
  });

  test('is accepted with empty members that ask for nothing', async () => {
    const nothing = {
      inference_providers: { aws: { disabled: false, role_arn: '' } },
      harness_auth_secrets: {},
      memory: { attached_stores: [], auto_memory: { enabled: false } },
      default_runner_uid: '',
      credential_strategy: '',
    };
    expect(await create({ name: 'Empty', ...nothing })).toMatchObject({ default_runner_uid: '' });
  });

  test('is refused with the stored MCP server of another team', async () => {
    const theirs = await service.request<{ id: string }>('POST', '/agent/mcp-servers', {
      body: { name: 'Theirs', command: 'tool' },
      key: service.otherKey,
    });
    for (const warp_id of [theirs.body.id, '01900000-0000-7000-8000-000000000000']) {
      const body = { name: 'I', mcp_servers: { tool: { warp_id } } };
      const { detail } = await service.problem(403, 'POST', path, { body });
      expect(detail).toMatch(/^mcp_servers\.tool: there is no such stored MCP server/);
    }
  });

  test('is not available while its environment does not exist', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const made = await create({ name: 'I', environment_id: environment.body.uid });
    expect(made.available).toBe(true);
    await service.request('DELETE', `/agent/environments/${environment.body.uid}`);
    expect(await service.ok('GET', `${path}/${made.uid}`)).toMatchObject({ available: false });
    const renamed = await service.request('PUT', `${path}/${made.uid}`, { body: { name: 'J', environment_id: '' } });
    expect(renamed.body).toMatchObject({ name: 'J', available: true });
  });

  test('cannot be changed to use a secret that the team does not have, and is not available after one of its secrets was deleted', async () => {
    await setSecret('LEAVING');
    const made = await create({ name: 'I', secrets: [{ name: 'LEAVING' }] });
    const one = `${path}/${made.uid}`;
    const problem = await service.problem(400, 'PUT', one, {
      body: { secrets: [{ name: 'LEAVING' }, { name: 'NONE' }] },
    });
    expect(problem.errors).toMatchObject([{ path: 'secrets', message: expect.stringContaining('no secret NONE') }]);
    await service.request('DELETE', '/secrets/LEAVING?scope=team');
    expect(await service.ok('GET', one)).toMatchObject({ available: false });
    const changed = await service.request('PUT', one, { body: { name: 'J' } });
    expect(changed.body).toMatchObject({ name: 'J', available: false });
  });

  test('is created once if two requests have the same Idempotency-Key', async () => {
    const post = () =>
      service.request<AgentIdentity>('POST', path, { headers: { 'Idempotency-Key': 'i-1' }, body: { name: 'Once' } });
    expect((await post()).body.uid).toBe((await post()).body.uid);
    await service.problem(409, 'POST', path, { headers: { 'Idempotency-Key': 'i-1' }, body: { name: 'Other' } });
  });
});

describe('the keys of an identity', () => {
  test('act as the identity, and are revoked in every process when the identity is deleted', async () => {
    const identity = await create({ name: 'Bot' });
    const { body } = await keyOf(identity);
    expect(await runOf({}, body.key)).toMatchObject({
      creator: { type: 'service_account', uid: identity.uid, display_name: 'Bot' },
      executor: { type: 'service_account', uid: identity.uid },
    });
    // The clock of this cache of keys does not move, so no entry expires.
    const elsewhere = await openKeyDirectory(service.deps.db, service.deps.log, () => 0);
    expect(await elsewhere.authenticate(body.key)).not.toBeNull();
    await service.request('DELETE', `${path}/${identity.uid}`);
    await expect.poll(() => elsewhere.authenticate(body.key), { interval: 20 }).toBeNull();
    await service.problem(401, 'GET', '/agent/runs', { key: body.key });
    elsewhere.close();
  });

  test('are never valid after a concurrent delete of the identity', async () => {
    for (let round = 0; round < 5; round += 1) {
      const identity = await create({ name: 'Race' });
      const [made] = await Promise.all([keyOf(identity), service.request('DELETE', `${path}/${identity.uid}`)]);
      expect([201, 403]).toContain(made.status);
      const left = await service.deps.db.query('SELECT FROM api_keys WHERE agent_uid = $1', [identity.uid]);
      expect(left).toHaveLength(0);
    }
  });

  test('read identities and cannot change them', async () => {
    const identity = await create({ name: 'Reader' });
    const { key } = (await keyOf(identity)).body;
    expect((await service.request('GET', `${path}/${identity.uid}`, { key })).status).toBe(200);
    await service.problem(403, 'PUT', `${path}/${identity.uid}`, { key, body: { secrets: [{ name: 'TOKEN' }] } });
    await service.problem(403, 'POST', path, { key, body: { name: 'More' } });
  });
});

describe('agent_identity_uid', () => {
  test('makes the identity the executor, with its defaults for members that the request omits', async () => {
    const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    for (const name of ['TOKEN', 'OTHER']) await setSecret(name);
    const identity = await create({
      name: 'Bot',
      base_model: 'runbook',
      environment_id: environment.body.uid,
      skills: ['a/b:c'],
      secrets: [{ name: 'TOKEN' }],
    });
    expect(await runOf({ agent_identity_uid: identity.uid })).toMatchObject({
      creator: { type: 'user' },
      executor: { type: 'service_account', uid: identity.uid },
      agent_config: {
        model_id: 'runbook',
        environment_id: environment.body.uid,
        skills: ['a/b:c'],
        secrets: [{ name: 'TOKEN' }],
      },
    });
    const more = { name: 'TOKEN', variable: 'SAME' };
    const own = { agent_identity_uid: identity.uid, config: { skills: ['x/y:z'], secrets: [more] } };
    expect(await runOf(own)).toMatchObject({ agent_config: { skills: ['x/y:z'], secrets: [more] } });
    // No caller can start a run of the identity with another secret of the team.
    const asked = { prompt: 'a', agent_identity_uid: identity.uid, config: { secrets: [{ name: 'OTHER' }] } };
    const { detail } = await service.problem(403, 'POST', '/agent/runs', { body: asked });
    expect(detail).toContain('the secret OTHER may not be used by this run');
  });

  test("gives the run the identity's prompt, harness, MCP servers and worker, but values of the request have priority", async () => {
    const [docs, own] = [{ url: 'https://mcp.example/docs' }, { url: 'https://mcp.example/own' }];
    const identity = await create({
      name: 'Bot',
      prompt: 'Be brief.',
      harness: { type: 'oz', model_id: 'runbook', reasoning_level: 'high' },
      mcp_servers: { docs, more: docs },
      worker_host: 'mac',
    });
    const { key } = (await keyOf(identity)).body;
    const expected = { base_prompt: 'Be brief.', worker_host: 'mac', mcp_servers: { docs, more: docs } };
    for (const run of [await runOf({ agent_identity_uid: identity.uid }), await runOf({}, key)])
      expect(run.agent_config).toMatchObject({
        ...expected,
        harness: { reasoning_level: 'high', model_id: 'runbook' },
      });
    const config = { base_prompt: 'Be long.', model_id: 'runbook', worker_host: '', mcp_servers: { docs: own } };
    const { agent_config } = await runOf({ agent_identity_uid: identity.uid, config });
    expect(agent_config).toMatchObject({ ...config, mcp_servers: { docs: own, more: docs } });
    expect(agent_config).toHaveProperty('harness', { type: 'oz', reasoning_level: 'high' });
    const other = { harness: { type: 'acp', command: ['agent'] } };
    expect((await runOf({ agent_identity_uid: identity.uid, config: other })).agent_config).toMatchObject(other);
  });

  test('gives the run the content of the identity, and a rerun by a person has the same content', async () => {
    const admin = await newPerson(service, team, 'admin');
    const identity = await create({ name: 'Bot', mcp_servers: { tool: { command: 'tool' } } }, admin.key);
    const first = await runOf({ agent_identity_uid: identity.uid });
    await service.request('PUT', `${path}/${identity.uid}`, { body: { mcp_servers: {} }, key: admin.key });
    const again = await service.request<{ run_id: string }>('POST', `/agent/runs/${first.run_id}/rerun`);
    const revision = { kind: 'agent_identity', uid: identity.uid, revision: 1, is_accepted: false };
    for (const id of [first.run_id, again.body.run_id])
      expect(await service.ok<RunItem>('GET', `/agent/runs/${id}`)).toMatchObject({
        agent_config: { mcp_servers: { tool: { command: 'tool' } } },
        contents: expect.arrayContaining([expect.objectContaining(revision)]),
      });
    const body = await service.ok<{ waiting: object[] }>('GET', `/acceptances?uid=${identity.uid}`);
    expect(body.waiting).toMatchObject([{ revision: 2 }]);
  });

  test('is refused if the identity is unknown, if the key is of another team, and if the key is of another identity', async () => {
    const [mine, other] = [await create({ name: 'Mine' }), await create({ name: 'Other' })];
    const { key } = (await keyOf(mine)).body;
    const body = { prompt: 'a', agent_identity_uid: other.uid };
    await service.problem(403, 'POST', '/agent/runs', { key, body });
    const refusals = [
      await service.problem(403, 'POST', '/agent/runs', { key: service.otherKey, body }),
      await service.problem(403, 'POST', '/agent/runs', { body: { prompt: 'a', agent_identity_uid: 'x' } }),
    ];
    expect(refusals[0]?.detail).toBe(refusals[1]?.detail);
  });
});

describe('the agents of a factory', () => {
  test('are listed and read in the form of identities, with inherited members, and keep their UIDs', async () => {
    const { open, apply } = testDefinitions(service);
    const factoryUid = (await open()).split('/').at(-1) ?? '';
    await apply(baseFiles);
    const list = async (key?: string) => {
      const answer = await service.request('GET', `${path}?factory_uid=${factoryUid}`, key ? { key } : {});
      return ListAgentIdentitiesResponse.parse(answer.body).agents;
    };
    const [foreman, reviewer] = await list();
    const defaults = { factory_uid: factoryUid, base_model: 'runbook', available: true, harness: { type: 'oz' } };
    expect(foreman).toMatchObject({ ...defaults, name: 'foreman', agent_type: 'FOREMAN', prompt: 'Divide the work.' });
    expect(reviewer).toMatchObject({ ...defaults, name: 'reviewer', agent_type: 'REVIEW', worker_host: 'mac' });
    await apply({ ...baseFiles, 'agents/reviewer/agent.md': '---\nagentType: REVIEW\n---\n\nReview well.\n' });
    const one = `${path}/${reviewer?.uid}`;
    expect(await service.ok('GET', one)).toMatchObject({ uid: reviewer?.uid, prompt: 'Review well.' });
    const all = ListAgentIdentitiesResponse.parse(await service.ok('GET', path)).agents;
    expect(all.filter(({ factory_uid }) => factory_uid !== undefined)).toEqual([]);
    expect([await list(service.otherKey), await service.ok('GET', `${path}?factory_uid=x`)]).toEqual([
      [],
      { agents: [] },
    ]);
    await service.problem(404, 'GET', one, { key: service.otherKey });
    // Only the definition can change these agents, and no key acts as such an agent.
    await service.problem(404, 'PUT', one, { body: { name: 'Mine' } });
    await service.problem(404, 'DELETE', one);
    const body = { prompt: 'a', agent_identity_uid: reviewer?.uid };
    await service.problem(403, 'POST', '/agent/runs', { body });
  });
});

test('give a child run no secret that its parent did not have', async () => {
  for (const name of ['FIRST', 'SECOND']) await setSecret(name);
  const identity = await create({ name: 'Bot', secrets: [{ name: 'FIRST' }] });
  const { runToken } = await service.startExecution({ mode: 'orchestrate', agent_identity_uid: identity.uid });
  const secrets = [{ name: 'FIRST' }, { name: 'SECOND' }];
  await service.request('POST', '/harness-support/resolve-prompt', { key: runToken, body: {} });
  await service.request('PUT', `${path}/${identity.uid}`, { body: { secrets, base_model: 'runbook' } });
  const body = { prompt: 'a' };
  const child = await service.ok<{ run_id: string }>('POST', '/harness-support/child-runs', { key: runToken, body });
  const run = await service.request<{ agent_config: object }>('GET', `/agent/runs/${child.run_id}`);
  expect(run.body).toMatchObject({ executor: { uid: identity.uid } });
  expect(run.body.agent_config).not.toHaveProperty('secrets');
  const asked = (name: string) => ({ key: runToken, body: { prompt: 'a', config: { secrets: [{ name }] } } });
  await service.ok('POST', '/harness-support/child-runs', asked('FIRST'));
  await service.problem(403, 'POST', '/harness-support/child-runs', asked('SECOND'));
});

describe('on_behalf_of', () => {
  test('is refused with a key that an administrator created before an owner permitted on_behalf_of', async () => {
    const admin = await newPerson(service, team, 'admin');
    const identity = await create({ name: 'Plain' }, admin.key);
    const { key } = (await keyOf(identity, admin.key)).body;
    await service.request('PUT', `${path}/${identity.uid}`, { body: { on_behalf_of_enabled: true } });
    const body = { prompt: 'a', on_behalf_of: admin.uid };
    await service.problem(401, 'POST', '/agent/runs', { key, body });
  });

  test('reaches the environments that admit the person as a guest, after the person has accepted the identity', async () => {
    const person = await newPerson(service, team, 'member');
    const body = await service.ok<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    const config = { environment_id: body.uid };
    const identity = await create({ name: 'Deputy', on_behalf_of_enabled: true });
    const { key } = (await keyOf(identity)).body;
    const asked = { on_behalf_of: person.uid, config };
    await service.problem(403, 'POST', '/agent/runs', { key, body: { prompt: 'a', ...asked } });
    await admitGuest(service, body.uid, person, { key: service.otherKey });
    const { detail } = await service.problem(403, 'POST', '/agent/runs', { key, body: { prompt: 'a', ...asked } });
    expect(detail).toContain(`bin/runyard accept agent_identity ${identity.uid}`);
    const acceptance = { kind: 'agent_identity', uid: identity.uid, revision: 1 };
    await service.request('POST', '/acceptances', { key: person.key, body: acceptance });
    expect(await runOf(asked, key)).toMatchObject({ agent_config: config });
    // The identity itself is not a guest.
    await service.problem(403, 'POST', '/agent/runs', { key, body: { prompt: 'a', config } });
  });

  test('makes the person the executor, for agent keys of an identity that acts for users', async () => {
    const person = await newPerson(service, team, 'member');
    const identity = await create({ name: 'Deputy', on_behalf_of_enabled: true });
    const { key } = (await keyOf(identity)).body;
    expect(await runOf({ on_behalf_of: person.uid }, key)).toMatchObject({
      creator: { type: 'service_account', uid: identity.uid },
      executor: { type: 'user', uid: person.uid },
    });
    const viewer = await newPerson(service, team, 'viewer');
    for (const uid of [viewer.uid, 'A'.repeat(22)])
      await service.problem(400, 'POST', '/agent/runs', { key, body: { prompt: 'a', on_behalf_of: uid } });
  });

  test('answers 403 to people and to other agent keys', async () => {
    const person = await newPerson(service, team, 'member');
    const { key } = (await keyOf(await create({ name: 'Plain' }))).body;
    for (const caller of [key, service.key, await service.newKey({ kind: 'agent' })])
      await service.problem(403, 'POST', '/agent/runs', {
        key: caller,
        body: { prompt: 'a', on_behalf_of: person.uid },
      });
  });

  test('is permitted only by owners, who also create the keys', async () => {
    const admin = await newPerson(service, team, 'admin');
    const plain = await create({ name: 'Plain' }, admin.key);
    await service.problem(403, 'POST', path, { key: admin.key, body: { name: 'D', on_behalf_of_enabled: true } });
    const on = { on_behalf_of_enabled: true };
    await service.problem(403, 'PUT', `${path}/${plain.uid}`, { key: admin.key, body: on });
    expect((await service.request('PUT', `${path}/${plain.uid}`, { body: on })).status).toBe(200);
    expect((await keyOf(plain, admin.key)).status).toBe(403);
    const renamed = await service.request('PUT', `${path}/${plain.uid}`, { key: admin.key, body: { name: 'E' } });
    expect(renamed.body).toMatchObject({ name: 'E', on_behalf_of_enabled: true });
    expect((await keyOf(plain)).status).toBe(201);
  });
});
