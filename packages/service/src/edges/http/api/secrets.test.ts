import { expect, it } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const member = await service.newKey({ role: 'member' });
const colleague = await service.newKey({ role: 'member' });
const agentKey = await service.newKey({ kind: 'agent' });
await db.query(`UPDATE api_keys SET agent_uid = 'deployer' WHERE kind = 'agent'`);

interface Listed {
  readonly secrets: readonly { name: string; scope: string; agents?: string[] }[];
}
const value = 'kT9-original-value';
const put = (name: string, body: object, key = service.key) =>
  service.request<Record<string, unknown>>('PUT', `/secrets/${name}`, { key, body });
const names = async (key: string) =>
  (await service.ok<Listed>('GET', '/secrets', { key })).secrets.map(({ name, scope }) => `${name} ${scope}`);
const run = (secrets: unknown, key = service.key, more: object = {}) => ({
  key,
  body: { prompt: 'a', config: { secrets, ...more } },
});

it('PUT /secrets/{name} answers without the value, encrypts the value, and shows when it was set', async () => {
  const first = await put('TOKEN', { value, scope: 'team' });
  expect(first.status, first.text).toBe(200);
  expect(first.body).toMatchObject({ name: 'TOKEN', scope: 'team', agents: [] });
  const second = await put('TOKEN', { value: `${value}-2`, scope: 'team', agents: ['deployer'] });
  expect(second.body).toMatchObject({ agents: ['deployer'], created_at: first.body.created_at });
  expect(second.body.updated_at).not.toBe(first.body.updated_at);
  const listed = await service.request('GET', '/secrets');
  expect(first.text + second.text + listed.text + service.logged.join('')).not.toContain(value);
  const rows = await db.query<{ row: string }>('SELECT s::text AS row FROM stored_secrets s');
  expect(rows.every(({ row }) => !row.includes(value) && !row.includes(Buffer.from(value).toString('hex')))).toBe(true);
});

it('a change of a secret keeps the list of its agents if the request omits the list', async () => {
  const again = await put('TOKEN', { value, scope: 'team' });
  expect(again.body.agents).toEqual(['deployer']);
});

it.each([
  ['x7Qw2', 'value'],
  ['aaaaaaaaaaaaaaa', 'value'],
  ['x7Qw'.repeat(4097), 'value'],
])('PUT /secrets/{name} refuses a value that cannot be removed from text, or is too large: %#', async (bad, path) => {
  const problem = await service.problem(400, 'PUT', '/secrets/BAD', { body: { value: bad, scope: 'personal' } });
  expect(problem.errors?.[0]?.path).toBe(path);
  expect(JSON.stringify(problem)).not.toContain(bad);
});

it('the refusal of a short value gives the reason', async () => {
  const problem = await service.problem(400, 'PUT', '/secrets/BAD', { body: { value: 'hunter2', scope: 'personal' } });
  expect(problem.errors?.[0]?.message).toContain('occurs in ordinary text');
});

it.each(['a-b', '1A', 'A'.repeat(101)])('PUT /secrets/{name} refuses the name %s', async (name) => {
  await service.problem(400, 'PUT', `/secrets/${name}`, { body: { value, scope: 'personal' } });
});

it('only administrators can set and delete secrets of the team', async () => {
  await service.problem(403, 'PUT', '/secrets/MINE', { key: member, body: { value, scope: 'team' } });
  await service.problem(403, 'DELETE', '/secrets/TOKEN', { key: member });
  await service.problem(403, 'PUT', '/secrets/TOKEN', { key: agentKey, body: { value, scope: 'team' } });
  await service.problem(403, 'DELETE', '/secrets/TOKEN', { key: agentKey });
});

it('the list of secrets shows personal secrets only to their owner, and shows agents only the secrets that they may name', async () => {
  await put('MINE', { value, scope: 'personal' }, member);
  await put('HIDDEN', { value, scope: 'team' });
  expect(await names(member)).toEqual(['HIDDEN team', 'MINE personal', 'TOKEN team']);
  expect(await names(colleague)).toEqual(['HIDDEN team', 'TOKEN team']);
  expect(await names(agentKey)).toEqual(['TOKEN team']);
  expect(await names(service.otherKey)).toEqual([]);
});

it('a delete must name the scope if a personal secret and a secret of the team have the same name', async () => {
  await put('TOKEN', { value, scope: 'personal' });
  await service.problem(400, 'DELETE', '/secrets/TOKEN');
  for (const name of ['WARP_METADATA_REGION', 'warp_metadata_region'])
    await service.problem(400, 'PUT', `/secrets/${name}`, {
      body: { value: 'a value of a secret', scope: 'personal' },
    });
  expect((await service.request('DELETE', '/secrets/TOKEN?scope=personal')).status).toBe(200);
  await service.problem(404, 'DELETE', '/secrets/TOKEN?scope=personal');
});

it('other teams cannot see the secrets of a team', async () => {
  await service.problem(404, 'DELETE', '/secrets/TOKEN', { key: service.otherKey });
  const problem = await service.problem(400, 'POST', '/agent/runs', run([{ name: 'TOKEN' }], service.otherKey));
  expect(problem.errors?.[0]).toMatchObject({ path: 'config.secrets', message: expect.stringContaining('TOKEN') });
  expect((await put('TOKEN', { value, scope: 'team' }, service.otherKey)).status).toBe(200);
  expect(await names(service.key)).toContain('HIDDEN team');
});

it("a run is refused with a colleague's secret, and with a secret that its agent may not use", async () => {
  expect((await service.request('POST', '/agent/runs', run([{ name: 'MINE' }], member))).status).toBe(200);
  const problem = await service.problem(400, 'POST', '/agent/runs', run([{ name: 'MINE' }], colleague));
  expect(problem.errors?.[0]?.message).toContain('there is no secret MINE');
  expect((await service.request('POST', '/agent/runs', run([{ name: 'TOKEN' }], agentKey))).status).toBe(200);
  const forbidden = await service.problem(403, 'POST', '/agent/runs', run([{ name: 'HIDDEN' }], agentKey));
  expect(forbidden.detail).toContain('HIDDEN');
});

it.each([
  [[{ name: 'TOKEN' }, { name: 'HIDDEN', variable: 'TOKEN' }], 'config.secrets.1.variable'],
  [[{ name: 'TOKEN', variable: 'LD_PRELOAD' }], 'config.secrets.0.variable'],
  [[{ name: 'TOKEN', variable: 'RUNYARD_RUN_TOKEN' }], 'config.secrets.0.variable'],
  [[{ name: 'TOKEN', as: 'argument' }], 'config.secrets.0.as'],
])('a run is refused with secret references that a sandbox cannot have: %#', async (secrets, path) => {
  const problem = await service.problem(400, 'POST', '/agent/runs', run(secrets));
  expect(problem.errors?.[0]?.path).toBe(path);
});

it('a rerun is refused to a caller who may not use the secret of the run', async () => {
  const created = await service.request<{ run_id: string }>('POST', '/agent/runs', run([{ name: 'MINE' }], member));
  await service.problem(400, 'POST', `/agent/runs/${created.body.run_id}/rerun`, { key: colleague });
});

it('an environment may name only secrets of the team that its editor may use', async () => {
  const config = (...granted: string[]) => ({ config: { name: 'E', secrets: granted.map((name) => ({ name })) } });
  const create = (key: string, ...granted: string[]) => ({ key, body: config(...granted) });
  const personal = await service.problem(400, 'POST', '/agent/environments', create(member, 'MINE'));
  expect(personal.errors?.[0]?.message).toContain('cannot have personal secrets');
  await service.problem(403, 'POST', '/agent/environments', create(agentKey, 'HIDDEN'));
  const path = `/agent/environments/${
    (await service.ok<{ uid: string }>('POST', '/agent/environments', create(member, 'TOKEN'))).uid
  }`;
  expect((await service.request('PUT', path, { key: member, body: config('HIDDEN') })).status).toBe(200);
  const ofAgent = await service.ok<{ uid: string }>('POST', '/agent/environments', create(agentKey, 'TOKEN'));
  const hidden = { key: agentKey, body: config('TOKEN', 'HIDDEN') };
  const refused = await service.problem(403, 'PUT', `/agent/environments/${ofAgent.uid}`, hidden);
  expect(refused.detail).toContain('HIDDEN');
});

it('a person has a limited number of secrets', async () => {
  await db.query(
    `INSERT INTO stored_secrets (id, team_id, owner_uid, name, vault_key_id, sealed_value)
     SELECT new_uuid_v7(), team_id, owner_uid, 'FILL_' || n, vault_key_id, sealed_value
     FROM stored_secrets, generate_series(1, 199) n WHERE name = 'MINE'`,
  );
  await service.problem(409, 'PUT', '/secrets/ONE_MORE', { key: member, body: { value, scope: 'personal' } });
  expect((await put('MINE', { value, scope: 'personal' }, member)).status).toBe(200);
});
