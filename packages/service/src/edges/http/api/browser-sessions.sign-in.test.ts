import { describe, expect, test } from 'vitest';
import { newBrowserSession, newSignInCode, pageHeaders, signIn, testPages } from '../../../../test/browser-session.ts';
import { invite, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { csrfTokenOf } from '../server/session-cookie.ts';

const service = await openTestService();
const { db } = service.deps;

const { rawKeyOf, sessionOf, uidOf } = testPages(service);

describe('the code of a sign-in link', () => {
  test('signs in one browser, even if many use it at once', async () => {
    const code = await newSignInCode(service);
    const answers = await Promise.all(Array.from({ length: 8 }, () => signIn(service, { code })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 7 }, () => 403)]);
    const session = answers.find(({ status }) => status === 200)?.body;
    expect(session?.display_name).toBe('Administrator');
    expect(Date.parse(session?.expires_at ?? '')).toBeLessThanOrEqual(Date.now() + 8 * 3_600_000);
  });

  test('is refused after a minute, with advice how to get another code', async () => {
    const code = await newSignInCode(service);
    await db.query(`UPDATE sign_in_codes SET expires_at = expires_at - interval '60 seconds'`);
    const { status, text } = await signIn(service, { code });
    expect([status, text]).toEqual([403, expect.stringContaining('Make another: bin/runyard open')]);
  });

  test('is stored and logged only as a hash, like the key of the session', async () => {
    const waiting = await newSignInCode(service);
    const code = await newSignInCode(service);
    const { cookie } = pageHeaders(service, await signIn(service, { code }));
    const [dump] = await db.query<{ dump: string }>(
      `SELECT (SELECT json_agg(c) FROM sign_in_codes c)::text || (SELECT json_agg(k) FROM api_keys k)::text AS dump`,
    );
    for (const secret of [waiting, code, rawKeyOf(cookie)]) {
      expect(dump?.dump).not.toContain(secret);
      expect(service.logged.join('\n')).not.toContain(secret);
    }
  });

  test('ends with the key that created it', async () => {
    const key = await service.newKey();
    const code = await newSignInCode(service, key);
    await service.request('DELETE', `/keys/${await uidOf(key)}`);
    expect((await signIn(service, { code })).status).toBe(403);
  });

  test('is not created for an agent key, a run token, a session or a request without a key', async () => {
    const { runToken } = await service.startExecution();
    const agent = await service.newKey({ kind: 'agent' });
    await service.problem(403, 'POST', '/sign-in-codes', { key: agent });
    await service.problem(403, 'POST', '/sign-in-codes', { key: null, headers: await newBrowserSession(service) });
    await service.problem(401, 'POST', '/sign-in-codes', { key: runToken });
    await service.problem(401, 'POST', '/sign-in-codes', { key: null });
  });
});

describe('a sign-in', () => {
  test('accepts the key of a person, but no other key and no second credential', async () => {
    const member = await service.newKey({ role: 'member' });
    expect((await signIn(service, { api_key: member })).status).toBe(200);
    const { cookie } = await newBrowserSession(service);
    const agent = await service.newKey({ kind: 'agent' });
    const expired = await service.newKey({ expiresIn: '-1 minute' });
    for (const api_key of [agent, expired, 'unknown', rawKeyOf(cookie)])
      expect((await signIn(service, { api_key })).status).toBe(403);
    for (const body of [{ api_key: member, code: await newSignInCode(service) }, {}])
      await service.problem(400, 'POST', '/browser-sessions', { key: null, body });
  });

  test('accepts the key that a person gets by accepting an invitation', async () => {
    const team = await teamUidOf(service);
    const body = { key: await invite(service, team, 'viewer'), display_name: 'Ada' };
    const accepted = await service.request<{ key: string }>('POST', '/team-invitations/accept', { key: null, body });
    const session = await sessionOf(await newBrowserSession(service, accepted.body.key));
    expect(session).toMatchObject({ kind: 'session', user: { display_name: 'Ada' }, teams: [{ role: 'viewer' }] });
  });

  test('is refused from pages of other origins and from programs that are not browsers', async () => {
    const own = service.baseUrl;
    const headers: Record<string, string>[] = [
      {},
      { origin: 'null' },
      { origin: 'https://evil.example' },
      { origin: own, 'sec-fetch-site': 'cross-site' },
      { origin: own, 'sec-fetch-site': 'same-site' },
    ];
    for (const each of headers) {
      const { status, text } = await signIn(service, { api_key: service.key }, each);
      expect([status, text]).toEqual([403, expect.stringContaining('Only the pages of this service')]);
    }
    const page = { origin: own, 'sec-fetch-site': 'same-origin' };
    expect((await signIn(service, { api_key: service.key }, page)).status).toBe(200);
  });

  test('gives a cookie that scripts and other sites cannot use, with the lifetime of the session', async () => {
    const parent = await service.newKey({ expiresIn: '2 minutes' });
    const set = (await signIn(service, { api_key: parent })).headers.get('set-cookie') ?? '';
    const { port } = new URL(service.baseUrl);
    expect(set.replace(/ryk_[\w-]{43}/, 'KEY')).toMatch(
      new RegExp(`^runyard-${port}=KEY; Path=/; HttpOnly; SameSite=Strict; Max-Age=1[01]\\d$`),
    );
  });
});

describe('a sign-in at another address of the service', () => {
  const at = async (origin: string, host = new URL(origin).host, api_key = service.key) =>
    await service.app.inject({
      method: 'POST',
      url: '/api/v1/browser-sessions',
      headers: { origin, host },
      payload: { api_key },
    });
  const read = async (cookie: string, host: string) =>
    (await service.app.inject({ method: 'GET', url: '/api/v1/session', headers: { cookie, host } })).statusCode;

  test('with TLS binds the cookie to TLS and the host, and no other cookie is read', async () => {
    const host = 'runyard.example';
    const answer = await at(`https://${host}`);
    const [cookie = '', ...attributes] = String(answer.headers['set-cookie']).split('; ');
    expect(cookie).toMatch(/^__Host-runyard=ryk_[\w-]{43}$/);
    expect(attributes).toEqual([
      'Path=/',
      'HttpOnly',
      'SameSite=Strict',
      expect.stringMatching(/^Max-Age=2\d{4}$/),
      'Secure',
    ]);
    expect(await read(`a=b; ${cookie}`, host)).toBe(200);
    for (const name of ['runyard', 'runyard-80', '__Host-runyard2', '__Host-runyar'])
      expect(await read(`${name}=${rawKeyOf(cookie)}`, host)).toBe(401);
    const headers = { cookie, host, 'x-csrf-token': csrfTokenOf(rawKeyOf(cookie)) };
    const write = async (origin: string) =>
      (await service.app.inject({ method: 'DELETE', url: '/api/v1/browser-sessions', headers: { ...headers, origin } }))
        .statusCode;
    expect(await write(`http://${host}`)).toBe(403);
    expect(await write(`https://${host}`)).toBe(200);
  });

  test('without TLS is refused with advice, except on a loopback address', async () => {
    for (const origin of ['http://10.0.0.5:4180', 'http://runyard.example', 'http://127.0.0.1.evil.example:4180']) {
      const answer = await at(origin);
      expect([answer.statusCode, answer.json().detail]).toEqual([
        403,
        expect.stringMatching(/^Without TLS.*ssh -L.*RUNYARD_BASE_URL/),
      ]);
    }
    // The address of the connection is a loopback address, but a proxy between browser and service may have opened the connection, so the
    // sign-in is refused.
    expect((await at('http://10.0.0.5:4180', '127.0.0.1:4180')).statusCode).toBe(403);
    for (const origin of ['http://localhost:9999', 'http://runyard.localhost:4180', 'http://[::1]:4180']) {
      const answer = await at(origin);
      expect(answer.headers['set-cookie']).toContain(`runyard-${new URL(origin).port}=`);
    }
  });
});
