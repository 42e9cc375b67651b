import { Session } from '@runyard/contract/team/browser-sessions';
import { describe, expect, test } from 'vitest';
import {
  newBrowserSession,
  newSignInCode,
  type PageHeaders,
  pageHeaders,
  signIn,
  testPages,
} from '../../../../test/browser-session.ts';
import { invite, newPerson, newTeam, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { authenticateWorker } from '../server/authorize.ts';

const service = await openTestService();
const { db } = service.deps;

const { listKeys, rawKeyOf, send, sessionOf, uidOf } = testPages(service);

describe('a browser session', () => {
  test('acts as its person: it starts, answers and deletes runs, but cannot read data of another team', async () => {
    const headers = await newBrowserSession(service, await service.newKey({ role: 'member' }));
    const createdRun = await send(headers, 'POST', '/agent/runs', { prompt: 'Do it' });
    const { run_id: runId } = createdRun.body as { run_id: string };
    const body = { message: 'And the tests.' };
    expect((await send(headers, 'POST', `/agent/runs/${runId}/followups`, body)).status).toBe(200);
    expect((await send(headers, 'POST', `/agent/runs/${runId}/cancel`)).status).toBe(200);
    expect((await send(headers, 'DELETE', `/agent/runs/${runId}`)).status).toBe(200);
    const other = await newBrowserSession(service, service.otherKey);
    const path = `/agent/runs/${await service.newRun()}`;
    await service.problem(404, 'GET', path, { key: null, headers: other });
  });

  test('acts in each team of its person that a header names, and in no other team', async () => {
    const [team, second, third] = [await teamUidOf(service), await newTeam(service), await newTeam(service)];
    const person = await newPerson(service, team, 'member');
    const headers = await newBrowserSession(service, person.key);
    const joined = { key: await invite(service, second, 'viewer') };
    expect((await send(headers, 'POST', '/team-invitations/join', joined)).status).toBe(200);
    expect((await sessionOf({ ...headers, 'x-team-uid': second })).teams).toMatchObject([
      { uid: team, role: 'member', is_current: false },
      { uid: second, role: 'viewer', is_current: true },
    ]);
    const inSecond = { key: null, headers: { ...headers, 'x-team-uid': second } };
    await service.problem(403, 'POST', '/agent/runs', { ...inSecond, body: { prompt: 'a' } });
    await service.problem(404, 'GET', `/agent/runs/${await service.newRun()}`, inSecond);
    await service.problem(403, 'GET', '/agent/runs', { key: null, headers: { ...headers, 'x-team-uid': third } });
    await service.problem(404, 'GET', `/teams/${third}/members`, { key: null, headers });
  });

  test('makes keys and invitations only in its first hour, and only the same session can read a created key in a repeated answer', async () => {
    const headers = await newBrowserSession(service);
    const [session] = (await listKeys()).filter(({ uid, is_session }) => is_session && uid !== '').slice(-1);
    const repeated = { ...headers, 'idempotency-key': 'one' };
    const body = { name: 'K', kind: 'personal' };
    const [first, again] = [
      await send(repeated, 'POST', '/keys', body),
      await send(repeated, 'POST', '/keys', body),
    ] as { status: number; body: { key: string } }[];
    expect([first?.status, first?.body.key]).toEqual([201, again?.body.key]);
    expect((await service.request('GET', '/keys', { key: first?.body.key ?? '' })).status).toBe(200);

    await db.query(`UPDATE api_keys SET created_at = created_at - interval '61 minutes' WHERE id = $1`, [session?.uid]);
    await db.query(`SELECT pg_notify('runyard_keys', '')`);
    await expect.poll(async () => (await send(headers, 'POST', '/keys', body)).status).toBe(403);
    const invitation = `/teams/${await teamUidOf(service)}/invitations`;
    const refused = await service.problem(403, 'POST', invitation, { key: null, headers, body: { role: 'member' } });
    expect(refused.detail).toContain('Sign in again');
    expect((await send(headers, 'GET', '/keys')).status).toBe(200);
  });

  test('never acts as the operator, connects no worker and opens no MCP server', async () => {
    const headers = await newBrowserSession(service);
    await service.problem(403, 'POST', '/teams', { key: null, headers, body: { name: 'T' } });
    expect((await send(headers, 'POST', `${service.baseUrl}/mcp`, {})).status).toBe(403);
    const raw = rawKeyOf(headers.cookie);
    expect(await authenticateWorker(service.deps.keys, `Bearer ${raw}`)).toBe(null);
    expect(await authenticateWorker(service.deps.keys, `Bearer ${service.key}`)).not.toBe(null);
    await service.problem(401, 'GET', '/agent/runs', { key: raw });
  });

  test("is listed among the keys, and shows the person, the person's teams and the time at which the session ends", async () => {
    const headers = await newBrowserSession(service);
    const session = await sessionOf(headers);
    expect(session).toMatchObject({
      kind: 'session',
      user: { type: 'user', display_name: 'Administrator' },
      csrf_token: headers['x-csrf-token'],
      base_url: service.baseUrl,
      code_host: '127.0.0.1:9',
    });
    expect(Date.parse(session.expires_at ?? '')).toBeGreaterThan(Date.now() + 7.9 * 3_600_000);
    expect((await listKeys()).find(({ uid }) => uid === session.uid)).toMatchObject({ is_session: true });
    const byKey = Session.parse(await service.ok('GET', '/session'));
    expect(byKey.client).toEqual({ address: '127.0.0.1', scheme: 'http', host: new URL(service.baseUrl).host });
    expect([byKey.kind, byKey.csrf_token, byKey.user.uid]).toEqual(['user', undefined, session.user.uid]);
    await service.problem(401, 'GET', '/session', { key: null });
  });

  test('ends when its key opens 50 newer sessions', async () => {
    const parent = await service.newKey({ role: 'member' });
    const first = await sessionOf(await newBrowserSession(service, parent));
    for (let count = 0; count < 50; count++) await newBrowserSession(service, parent);
    const sessions = (await listKeys(parent)).filter(({ is_session }) => is_session);
    expect(sessions).toHaveLength(50);
    expect(sessions.some(({ uid }) => uid === first.uid)).toBe(false);
  });
});

describe('a request with the cookie of a session', () => {
  const refusal = async (headers: Record<string, string>, method = 'POST') => {
    const path = method === 'POST' ? '/agent/runs' : '/session';
    const body = method === 'POST' ? { body: { prompt: 'a' } } : {};
    return (await service.problem(403, method, path, { key: null, headers, ...body })).detail;
  };
  const without = (headers: PageHeaders, name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name));

  test('that writes is refused without the token of its session, and the error names the token as the reason', async () => {
    const [headers, other] = [await newBrowserSession(service), await newBrowserSession(service)];
    expect(await refusal(without(headers, 'x-csrf-token'))).toContain('X-CSRF-Token is missing');
    for (const wrong of [other['x-csrf-token'], `${headers['x-csrf-token']}a`, ''])
      expect(await refusal({ ...headers, 'x-csrf-token': wrong })).toContain('X-CSRF-Token is not the token of this');
  });

  test('that writes is refused if it does not come from a page of the service, and the error gives this reason', async () => {
    const headers = await newBrowserSession(service);
    expect(await refusal(without(headers, 'origin'))).toContain('Origin is missing');
    const { port } = new URL(service.baseUrl);
    for (const origin of ['null', 'https://evil.example', 'http://127.0.0.1:1', `https://127.0.0.1:${port}`])
      expect(await refusal({ ...headers, origin })).toContain('Origin is of another page');
    for (const site of ['cross-site', 'same-site', 'none'])
      expect(await refusal({ ...headers, 'sec-fetch-site': site })).toContain(`Sec-Fetch-Site is ${site}`);
    const own = { ...headers, 'sec-fetch-site': 'same-origin' };
    expect((await send(own, 'POST', '/agent/runs', { prompt: 'a' })).status).toBe(200);
  });

  test('that reads is refused from other sites and other ports of the host, and accepted if the person enters the address', async () => {
    const { cookie } = await newBrowserSession(service);
    for (const site of ['cross-site', 'same-site'])
      expect(await refusal({ cookie, 'sec-fetch-site': site }, 'GET')).toContain(`Sec-Fetch-Site is ${site}`);
    for (const site of ['none', 'same-origin'])
      expect((await send({ cookie, 'sec-fetch-site': site }, 'GET', '/session')).status).toBe(200);
  });

  test('with a key has only the rights of the key', async () => {
    const { cookie } = await newBrowserSession(service);
    const options = { headers: { cookie }, body: { name: 'T' } };
    expect((await service.request('POST', '/teams', options)).status).toBe(201);
    await service.problem(401, 'GET', '/session', { key: 'unknown', headers: { cookie } });
    const other = await service.request('GET', '/session', { key: service.otherKey, headers: { cookie } });
    expect(other.body).toMatchObject({ kind: 'user', teams: [{ name: 'Other' }] });
  });

  test('is refused if the cookie contains the key of a person', async () => {
    const { cookie } = await newBrowserSession(service);
    await service.problem(401, 'GET', '/session', {
      key: null,
      headers: { cookie: cookie.replace(/=.*/, `=${service.key}`) },
    });
  });
});

describe('a session ends', () => {
  const read = async (headers: PageHeaders) => (await send(headers, 'GET', '/session')).status;

  test('at once when its key or the session is deleted, and otherwise at its expiry time', async () => {
    const parent = await service.newKey();
    const [first, second, third] = [
      await newBrowserSession(service, parent),
      await newBrowserSession(service),
      await newBrowserSession(service),
    ];
    for (const headers of [first, second, third]) expect(await read(headers)).toBe(200);
    const [secondUid, thirdUid] = [(await sessionOf(second)).uid, (await sessionOf(third)).uid];
    await service.request('DELETE', `/keys/${await uidOf(parent)}`);
    await service.request('DELETE', `/keys/${secondUid}`);
    await db.query('UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = $1', [thirdUid]);
    await db.query(`SELECT pg_notify('runyard_keys', '')`);
    // The notification about the deletion reaches the other processes within milliseconds.
    for (const headers of [first, second, third]) await expect.poll(() => read(headers)).toBe(401);
  });

  test('at the sign-out together with its streams, even for a copy of the cookie', async () => {
    const headers = await newBrowserSession(service);
    const { cookie } = headers;
    const stream = await fetch(`${service.baseUrl}/api/v1/agent/runs/events`, { headers: { cookie } });
    expect(stream.status).toBe(200);
    const ended = stream.text().catch(() => 'cut');
    const answer = await send(headers, 'DELETE', '/browser-sessions/current');
    const gone = (name: string) => `${name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`;
    const [name = ''] = cookie.split('=');
    expect(answer.headers.getSetCookie()).toEqual([`${gone('__Host-runyard')}; Secure`, gone(name)]);
    await expect.poll(() => read(headers)).toBe(401);
    const problem = await service.problem(401, 'GET', '/session', { key: null, headers: { cookie } });
    expect(problem.detail).toBe('The session has ended. Sign in again.');
    expect(await ended).toBe('cut');
  });

  test('together with all other sessions of the person in all teams, and with unused codes', async () => {
    const team = await teamUidOf(service);
    const person = await newPerson(service, team, 'member');
    const second = await newTeam(service);
    const join = { key: await invite(service, second, 'member') };
    await service.request('POST', '/team-invitations/join', { key: person.key, body: join });
    const inSecond = await service.request<{ code: string }>('POST', '/sign-in-codes', {
      key: person.key,
      headers: { 'x-team-uid': second },
    });
    const sessions = [
      await newBrowserSession(service, person.key),
      pageHeaders(service, await signIn(service, { code: inSecond.body.code })),
    ] as const;
    const stranger = await newBrowserSession(service);
    const code = await newSignInCode(service, person.key);
    expect((await send(sessions[0], 'DELETE', '/browser-sessions')).status).toBe(200);
    for (const headers of sessions) await expect.poll(() => read(headers)).toBe(401);
    expect((await signIn(service, { code })).status).toBe(403);
    expect(await read(stranger)).toBe(200);
    expect((await service.request('GET', '/session', { key: person.key })).status).toBe(200);
  });
});
