import { describe, expect, test } from 'vitest';
import { exchange, newBrowserSession, newSignInCode } from '../../../../test/browser-session.ts';
import { openTestService } from '../../../../test/service.ts';
import { authenticateWorker } from '../server/authorize.ts';

const service = await openTestService();
const { db } = service.deps;

const listKeys = async (key = service.key) =>
  (await service.request<{ keys: { uid: string; name: string; last_four: string }[] }>('GET', '/keys', { key })).body
    .keys;
const uidOf = async (key: string) => (await listKeys()).find(({ last_four }) => last_four === key.slice(-4))?.uid;

describe('the code of a sign-in link', () => {
  test('signs in one browser, also when many use it at once', async () => {
    const code = await newSignInCode(service);
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(service, code)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 403)]);
    const session = answers.find(({ status }) => status === 200)?.body;
    expect(session?.display_name).toBe('Administrator');
    expect(Date.parse(session?.expires_at ?? '')).toBeLessThanOrEqual(Date.now() + 8 * 3_600_000);
  });

  test('is refused after a minute, and says how to get another', async () => {
    const code = await newSignInCode(service);
    await db.query(`UPDATE sign_in_codes SET expires_at = expires_at - interval '60 seconds'`);
    const { status, text } = await exchange(service, code);
    expect([status, text]).toEqual([403, expect.stringContaining('Make another: bin/runyard open')]);
  });

  test('is refused from pages of other origins and from programs that are not pages', async () => {
    const code = await newSignInCode(service);
    const own = service.baseUrl;
    const headers: Record<string, string>[] = [
      {},
      { origin: 'null' },
      { origin: 'https://evil.example' },
      { origin: own, 'sec-fetch-site': 'cross-site' },
      { origin: own, 'sec-fetch-site': 'same-site' },
    ];
    for (const each of headers) expect((await exchange(service, code, each)).status).toBe(403);
    expect((await exchange(service, code, { origin: own, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  });

  test('is stored and logged only as a hash, as is the key of the session', async () => {
    const waiting = await newSignInCode(service);
    const code = await newSignInCode(service);
    const { key } = (await exchange(service, code)).body;
    const [dump] = await db.query<{ dump: string }>(
      `SELECT (SELECT json_agg(c) FROM sign_in_codes c)::text || (SELECT json_agg(k) FROM api_keys k)::text AS dump`,
    );
    for (const secret of [waiting, code, key]) {
      expect(dump?.dump).not.toContain(secret);
      expect(service.logged.join('\n')).not.toContain(secret);
    }
  });

  test('ends with the key that made it', async () => {
    const key = await service.newKey();
    const code = await newSignInCode(service, key);
    await service.request('DELETE', `/keys/${await uidOf(key)}`);
    expect((await exchange(service, code)).status).toBe(403);
  });

  test('is not created for an agent key, a run token, a session or a request without a key', async () => {
    const { runToken } = await service.startExecution();
    const agent = await service.newKey({ kind: 'agent' });
    await service.problem(403, 'POST', '/sign-in-codes', { key: agent });
    await service.problem(403, 'POST', '/sign-in-codes', { key: await newBrowserSession(service) });
    await service.problem(401, 'POST', '/sign-in-codes', { key: runToken });
    await service.problem(401, 'POST', '/sign-in-codes', { key: null });
  });
});

describe('the key of a browser session', () => {
  test('reads and answers the runs of its team as the person, and nothing of another team', async () => {
    const member = await service.newKey({ role: 'member' });
    const key = await newBrowserSession(service, member);
    const runId = await service.newRun();
    expect((await service.request('GET', `/agent/runs/${runId}`, { key })).status).toBe(200);
    const body = { message: 'And the tests.' };
    expect((await service.request('POST', `/agent/runs/${runId}/followups`, { key, body })).status).toBe(200);
    expect((await service.request('POST', `/agent/runs/${runId}/cancel`, { key })).status).toBe(200);
    const other = await newBrowserSession(service, service.otherKey);
    await service.problem(404, 'GET', `/agent/runs/${runId}`, { key: other });
  });

  test('neither manages keys nor creates or deletes runs, and connects no worker', async () => {
    const key = await newBrowserSession(service);
    const runId = await service.newRun();
    await service.problem(403, 'POST', '/keys', { key, body: { name: 'K', kind: 'personal' } });
    await service.problem(403, 'GET', '/keys', { key });
    await service.problem(403, 'POST', '/agent/runs', { key, body: { prompt: 'Do it' } });
    await service.problem(403, 'DELETE', `/agent/runs/${runId}`, { key });
    expect(await authenticateWorker(service.deps.keys, `Bearer ${key}`)).toBe(null);
    expect(await authenticateWorker(service.deps.keys, `Bearer ${service.key}`)).not.toBe(null);
  });

  test('ends at once with the key that made it, at its deletion, and at the sign-out', async () => {
    const runId = await service.newRun();
    const parent = await service.newKey();
    const read = async (key: string) => (await service.request('GET', `/agent/runs/${runId}`, { key })).status;
    const [first, second, third] = [
      await newBrowserSession(service, parent),
      await newBrowserSession(service),
      await newBrowserSession(service),
    ];
    for (const key of [first, second, third]) expect(await read(key)).toBe(200);
    await service.request('DELETE', `/keys/${await uidOf(parent)}`);
    await service.request('DELETE', `/keys/${await uidOf(second)}`);
    await service.request('DELETE', '/browser-sessions/current', { key: third });
    // A notice reaches the other processes within milliseconds.
    for (const key of [first, second, third]) await expect.poll(() => read(key)).toBe(401);
  });

  test('ends when the key that made it expires', async () => {
    const parent = await service.newKey({ expiresIn: '2 minutes' });
    const { expires_at } = (await exchange(service, await newSignInCode(service, parent))).body;
    expect(Date.parse(expires_at)).toBeLessThan(Date.now() + 3 * 60_000);
  });

  test('leaves room for API keys: a key has at most 50 sessions, and the oldest ends first', async () => {
    const parent = await service.newKey({ role: 'member' });
    const first = await newBrowserSession(service, parent);
    for (let count = 0; count < 50; count++) await newBrowserSession(service, parent);
    const sessions = (await listKeys(parent)).filter(({ name }) => name === 'Browser session');
    expect(sessions).toHaveLength(50);
    expect(sessions.some(({ last_four }) => last_four === first.slice(-4))).toBe(false);
  });
});
