import type { ListModelProvidersResponse, TestModelProviderResponse } from '@runyard/contract/team/model-providers';
import type { ListModelsResponse } from '@runyard/contract/team/models';
import { makeAddressRules } from '@runyard/system/address-rules';
import { beforeEach, expect, test, vi } from 'vitest';
import { fakeModelKeys, startFakeModels } from '../../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { newBrowserSession } from '../../../../test/browser-session.ts';
import { openTestService } from '../../../../test/service.ts';
import { combineAccess } from '../../../team/models/provider-access.ts';
import { lookupFor } from '../../../team/models/providers.ts';
import { openStoredProviders } from '../../../team/models/stored-providers.ts';
import { openUpstreams } from '../../gateway/models/upstream.ts';

const fake = closeAtEnd(await startFakeModels());
const service = await openTestService({
  env: {
    RUNYARD_OPENAI_BASE_URL: fake.url,
    RUNYARD_GOOGLE_BASE_URL: `${fake.url}/none`,
    RUNYARD_ANTHROPIC_API_KEY: 'sk-ant-of-the-settings-0123456789',
    RUNYARD_ANTHROPIC_BASE_URL: fake.url,
  },
});
const { db, vault, log, settings, storedProviders, models, executionDeps } = service.deps;
beforeEach(async () => {
  await db.query('DELETE FROM model_providers');
  await storedProviders.refresh();
});

const key = fakeModelKeys.openai;
const path = '/model-providers/openai';
const put = (body: object, given: object = {}, at = path) => service.request('PUT', at, { body, ...given });
const list = async () => (await service.request<ListModelProvidersResponse>('GET', '/model-providers')).body.providers;
const ofOpenAi = async () => (await list()).find(({ provider }) => provider === 'openai');
const ageSessions = async () => {
  await db.query(`UPDATE api_keys SET created_at = now() - interval '2 hours' WHERE name = 'Browser session'`);
  await db.query(`SELECT pg_notify('runyard_keys', '')`);
};

test('a stored key makes runs work at once, in all processes, and ends at once when it is deleted', async () => {
  const other = await openStoredProviders({ db, vault, log }, settings);
  const usable = async () =>
    (await service.request<ListModelsResponse>('GET', '/agent/models')).body.models.filter(
      ({ id, disable_reason }) => id.startsWith('openai/') && disable_reason === undefined,
    ).length;
  const ask = (token: string) =>
    service.request('POST', '/gateway/openai/v1/chat/completions', {
      key: token,
      body: { model: 'gpt-5-mini', messages: [{ role: 'user', content: 'a' }] },
    });
  expect(await usable()).toBe(0);
  const config = { model_id: 'openai/gpt-5-mini' };
  await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'a', config } });
  expect((await put({ key })).body).toMatchObject({ source: 'stored', last_four: key.slice(-4) });
  expect(await usable()).toBeGreaterThan(0);
  await vi.waitFor(() => expect(other.upstreams().openai?.key).toBe(key));
  const { runToken } = await service.startExecution({ config });
  expect((await ask(runToken)).status).toBe(200);
  expect((await service.request('DELETE', path)).body).toEqual({ success: true });
  expect(await usable()).toBe(0);
  expect((await ask(runToken)).status).not.toBe(200);
  await vi.waitFor(() => expect(other.upstreams().openai).toBeUndefined());
  await service.problem(404, 'DELETE', path);
  other.close();
});

test('a key cannot be read back: not from an answer, a row, the log or the audit log', async () => {
  await put({ key });
  await put({ key: `${key}9` });
  const texts = [
    (await service.request('GET', '/model-providers')).text,
    (await service.request('GET', '/audit-log?subject_type=model_provider')).text,
    (await service.request('GET', '/agent/models')).text,
    service.logged.join(),
    ...(
      await db.query<{ text: string }>(`SELECT p::text || encode(sealed_key, 'escape') AS text FROM model_providers p`)
    ).map(({ text }) => text),
  ];
  for (const text of texts) expect(text).not.toContain(key.slice(0, -4));
  expect(texts[1]).toContain('model_provider.update');
  expect(await ofOpenAi()).toMatchObject({ source: 'stored', last_four: 'tor9', set_by: { type: 'user' } });
  expect(await put({ key: 'short-key' })).toMatchObject({
    body: expect.not.objectContaining({ last_four: expect.anything() }),
  });
});

test('texts of agents lose a stored key', async () => {
  const before = executionDeps.secrets;
  await put({ key: 'sk-stored-later-0123456789' });
  expect(before).not.toContain('sk-stored-later-0123456789');
  expect(executionDeps.secrets).toContain('sk-stored-later-0123456789');
  expect(executionDeps.secrets).toBe(executionDeps.secrets);
});

test('only owners of the team of the operator store, delete, test and list keys', async () => {
  await put({ key });
  const otherOwner = await service.newKey({ teamId: service.otherTeamId, role: 'owner' });
  const administrator = await service.newKey({ role: 'admin' });
  const agent = await service.newKey({ kind: 'agent' });
  for (const caller of [otherOwner, administrator, agent, service.otherKey]) {
    await service.problem(403, 'PUT', path, { key: caller, body: { key } });
    await service.problem(403, 'DELETE', path, { key: caller });
    await service.problem(403, 'POST', `${path}/test`, { key: caller });
    await service.problem(403, 'GET', '/model-providers', { key: caller });
  }
  const owner = await service.newKey({ role: 'owner' });
  expect((await put({ key }, { key: owner })).status).toBe(200);
});

test('a browser session of an owner stores a key in its first hour only', async () => {
  const headers = await newBrowserSession(service);
  expect((await put({ key }, { key: null, headers })).status).toBe(200);
  await ageSessions();
  await vi.waitFor(async () => expect((await put({ key }, { key: null, headers })).status).toBe(403));
  expect((await service.request('DELETE', path, { key: null, headers })).status).toBe(403);
  expect((await service.request('GET', '/model-providers', { key: null, headers })).status).toBe(200);
});

test('a setting of the process has priority and cannot be replaced', async () => {
  await service.problem(409, 'PUT', '/model-providers/anthropic', { body: { key } });
  expect((await list())[0]).toMatchObject({ source: 'settings', setting: 'RUNYARD_ANTHROPIC_API_KEY' });
  const stored = { anthropic: { baseUrl: 'https://stored.example/v1', key: 'stored' } };
  expect(combineAccess(settings, () => stored).upstreams().anthropic?.baseUrl).toBe(`${fake.url}/v1`);
});

test('a base URL to an internal address is refused when it is stored', async () => {
  for (const url of [
    fake.url,
    'https://localhost/v1',
    'https://169.254.169.254/v1',
    'https://[::1]/v1',
    'http://api.example/v1',
    'https://user:word@api.example/v1',
    'https://api.example/v1?to=x',
    'file:///etc/passwd',
  ])
    expect((await put({ key, base_url: url })).status, url).toBe(400);
  expect((await put({ base_url: 'https://api.example/v1' })).status).toBe(400);
  expect((await put({ key }, {}, '/model-providers/local')).status).toBe(400);
  expect((await put({ key, base_url: 'https://api.example' })).body).toMatchObject({ endpoint: 'api.example:443' });
  expect(models.upstreams.openai?.check, 'each connection checks the address').toBeDefined();
});

test('a base URL whose name resolves to an internal address gets no connection', async () => {
  const { port } = new URL(fake.url);
  const check = {
    rules: makeAddressRules([]),
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  };
  const url = new URL(`http://api.example:${port}/v1/models`);
  await expect(lookupFor({ check }, url, AbortSignal.timeout(5_000))).rejects.toThrow('neither public nor');
  const upstreams = openUpstreams(
    { connectMs: 1_000, reachMs: 1, silenceMs: 1_000, hangUpMs: 1_000 },
    (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
  );
  const send = (given: object) =>
    upstreams.send({ url, method: 'GET', headers: {}, ...given }, AbortSignal.timeout(5_000));
  // This connection stays open, and must not serve the request with the check.
  const free = await send({});
  expect(free.kind).toBe('answer');
  if (free.kind === 'answer') for await (const _part of free.response);
  expect(await send({ check })).toMatchObject({
    kind: 'unreachable',
    message: expect.stringContaining('ERR_ADDRESS_REFUSED'),
  });
  upstreams.close();
});

test('a test request says in a sentence whether the provider accepts the key, without text of the provider', async () => {
  const outcome = async (provider = 'openai') =>
    (await service.request<TestModelProviderResponse>('POST', `/model-providers/${provider}/test`)).body;
  await service.problem(404, 'POST', `${path}/test`);
  await put({ key });
  expect(await outcome()).toEqual({ works: true, message: 'OpenAI accepts the key.' });
  await put({ key: `${key}-wrong` });
  expect(await outcome()).toEqual({ works: false, message: 'OpenAI refuses the key (status 401).' });
  await put({ key }, {}, '/model-providers/google');
  expect(await outcome('google')).toEqual({
    works: false,
    message: 'Google does not know the path (status 404): check the base URL.',
  });
  await put({ key, base_url: 'https://name.invalid' });
  expect((await outcome()).message).toMatch(/^OpenAI cannot be reached/);
});

test('a key that the secrets key of the process does not decrypt is named and not used', async () => {
  await put({ key });
  await db.query(
    `UPDATE model_providers SET sealed_key = '\\x00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'`,
  );
  await storedProviders.refresh();
  expect(await ofOpenAi()).toMatchObject({ source: 'stored', problem: expect.stringContaining('does not decrypt') });
  expect(models.upstreams.openai).toBeUndefined();
});
