import { generateKeyPairSync } from 'node:crypto';
import { maxCodeHostCredentials } from '@runyard/contract/limits';
import { CodeHostCredential, ListCodeHostCredentialsResponse } from '@runyard/contract/team/code-hosts';
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const member = await service.newKey({ role: 'member' });
const secret = 'github_pat_very-secret-0123456789';
const pem = (bits: number) =>
  generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const create = async (body: object, key = service.key) =>
  CodeHostCredential.parse(await service.ok('POST', '/code-hosts', { key, body }));
const list = async (key = service.key) => {
  const { body, text } = await service.request('GET', '/code-hosts', { key });
  expect(text).not.toContain(secret);
  return ListCodeHostCredentialsResponse.parse(body).credentials.map(({ id }) => id);
};

test('a credential is stored, listed and deleted, and no answer, row or log line contains its value', async () => {
  const answer = await service.request('POST', '/code-hosts', {
    body: { scope: 'team', kind: 'token', owner: 'ACME', token: secret },
  });
  expect(answer.text).not.toContain(secret);
  const made = CodeHostCredential.parse(answer.body);
  expect(made).toMatchObject({ scope: 'team', host: '127.0.0.1:9', owner: 'acme', username: 'x-access-token' });
  expect(await list()).toContain(made.id);
  const rows = await service.deps.db.query<{ text: string }>(
    `SELECT c::text || encode(c.sealed_secret, 'escape') AS text FROM code_host_credentials c`,
  );
  expect(rows.map(({ text }) => text).join()).not.toContain(secret);
  expect(service.logged.join()).not.toContain(secret);
  expect(await service.ok('DELETE', `/code-hosts/${made.id}`)).toEqual({ success: true });
  expect(await list()).not.toContain(made.id);
  await service.problem(404, 'DELETE', `/code-hosts/${made.id}`);
  await service.problem(404, 'DELETE', '/code-hosts/x');
});

test('members see the credentials of the team and their own, and can delete only their own', async () => {
  const ofTeam = await create({ scope: 'team', kind: 'token', owner: 'visible', token: secret });
  const own = await create({ kind: 'token', owner: 'visible', token: secret }, member);
  const ofAdmin = await create({ kind: 'token', owner: 'visible', token: secret });
  expect(own).toMatchObject({ scope: 'personal', user: { type: 'user', display_name: 'A person' } });
  expect(await list(member)).toEqual([ofTeam.id, own.id]);
  expect(await list()).toEqual(expect.arrayContaining([ofTeam.id, own.id, ofAdmin.id]));
  expect(await list(service.otherKey)).toEqual([]);
  await service.problem(404, 'DELETE', `/code-hosts/${ofTeam.id}`, { key: member });
  await service.problem(404, 'DELETE', `/code-hosts/${ofAdmin.id}`, { key: member });
  await service.problem(404, 'DELETE', `/code-hosts/${own.id}`, { key: service.otherKey });
  expect((await service.request('DELETE', `/code-hosts/${own.id}`, { key: member })).status).toBe(200);
});

test('a member cannot store a credential of the team, and an agent key cannot store any credential', async () => {
  const body = { scope: 'team', kind: 'token', token: secret };
  await service.problem(403, 'POST', '/code-hosts', { key: member, body });
  const agent = await service.newKey({ kind: 'agent' });
  await service.problem(403, 'POST', '/code-hosts', { key: agent, body: { kind: 'token', token: secret } });
  await service.problem(403, 'GET', '/code-hosts', { key: agent });
});

test.each([
  ['host', { kind: 'token', token: 'a', host: 'evil.example' }],
  ['host', { kind: 'token', token: 'a', host: 'github.com/x' }],
  ['token', { kind: 'token' }],
  ['token', { kind: 'token', token: 'a\nb' }],
  ['username', { kind: 'token', token: 'a', username: 'a:b' }],
  ['app_id', { kind: 'token', token: 'a', app_id: '1' }],
  ['private_key', { kind: 'github_app', app_id: '1' }],
  ['private_key', { kind: 'github_app', app_id: '1', private_key: 'no key' }],
  ['private_key', { kind: 'github_app', app_id: '1', private_key: pem(1024) }],
  ['token', { kind: 'github_app', app_id: '1', private_key: 'a', token: 'a' }],
  ['owner', { kind: 'token', token: 'a', owner: '../x' }],
  ['scope', { scope: 'everyone', kind: 'token', token: 'a' }],
])('a create gets 400 that names %s for %j', async (path, body) => {
  const problem = await service.problem(400, 'POST', '/code-hosts', { body });
  expect(problem.errors?.map((error) => error.path)).toContain(path);
});

test('a team has one credential for each host and owner, and a repeated Idempotency-Key stores no second one', async () => {
  const body = { kind: 'github_app', owner: 'once', app_id: 'Iv1.a', private_key: pem(2048), installation_id: '7' };
  const ask = () => service.request('POST', '/code-hosts', { body, headers: { 'idempotency-key': 'c' } });
  const answers = await Promise.all([ask(), ask()]);
  expect(answers[1]?.body).toEqual(answers[0]?.body);
  expect(answers[0]?.body).toMatchObject({ kind: 'github_app', app_id: 'Iv1.a', installation_id: '7' });
  expect(answers[0]?.text).not.toContain('PRIVATE');
  const problem = await service.problem(409, 'POST', '/code-hosts', { body: { ...body, owner: 'Once' } });
  expect(problem.detail).toContain('delete it first');
});

test('a person can store a limited number of credentials, and credentials of other people do not count', async () => {
  const person = await service.newKey({ role: 'member' });
  for (let n = 0; n < maxCodeHostCredentials; n += 1)
    await create({ kind: 'token', owner: `o${n}`, token: secret }, person);
  const body = { kind: 'token', owner: 'more', token: secret };
  const problem = await service.problem(409, 'POST', '/code-hosts', { key: person, body });
  expect(problem.detail).toContain(`at most ${maxCodeHostCredentials}`);
  await create(body, member);
});

test('the credentials of a person who leaves the team are deleted', async () => {
  const person = await service.newKey({ role: 'member' });
  const { id, user } = await create({ kind: 'token', owner: 'leaver', token: secret }, person);
  await service.deps.db.query('DELETE FROM team_members WHERE user_id = (SELECT id FROM users WHERE uid = $1)', [
    user?.uid,
  ]);
  expect(await list()).not.toContain(id);
});
