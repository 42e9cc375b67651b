import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { maxExchangesPerSignOn, signOnsPerMinute } from '@runyard/contract/limits';
import type { Session } from '@runyard/contract/team/browser-sessions';
import type { ListTeamMembersResponse } from '@runyard/contract/team/teams';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { type PageHeaders, pageHeaders } from '../../../../test/browser-session.ts';
import {
  type Account,
  clientId,
  clientSecret,
  newSigningKey,
  signToken,
  startIdentityProvider,
  weakToken,
} from '../../../../test/identity-provider.ts';
import { invite, newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService, type TestAnswer } from '../../../../test/service.ts';
import { hashKey, newRawKey } from '../../../team/access/keys/key.ts';
import { endManagementByHand } from '../../../team/access/people/by-rules.ts';
import { confirmPeople } from '../../../team/access/sign-on/refresh.ts';
import { sealPurpose } from '../../../team/access/sign-on/sign-in.ts';

const provider = await startIdentityProvider();
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sign-on-'));
const file = path.join(folder, 'sign-on.yaml');
const ruled = 'RuledRuledRuledRuled22';
const secretFile = path.join(folder, 'secret');
await writeFile(secretFile, `${clientSecret}\n`);
await writeFile(
  file,
  `
providers:
  - id: acme
    name: Acme
    issuer: ${provider.issuer}
    client_id: ${clientId}
    client_secret_file: ${secretFile}
    scopes: [profile, email, groups, offline_access]
    parameters: { prompt: consent }
    timeout_seconds: 1
  - { id: gone, name: Gone, issuer: 'http://127.0.0.1:9', client_id: a, timeout_seconds: 1 }
teams:
  - team: ${ruled}
    rules:
      - { provider: acme, group: g-readers, role: viewer }
      - { provider: acme, group: g-makers, role: member }
      - { provider: acme, group: g-leads, role: admin }
      - { provider: gone, group: g-makers, role: owner }
`,
);
const service = await openTestService({ env: { RUNYARD_OIDC_FILE: file, RUNYARD_TRUSTED_PROXIES: '127.0.0.1' } });
const { db } = service.deps;
provider.register(`${service.baseUrl}/sign-in`);
await db.query(`INSERT INTO teams (id, uid, name) VALUES (gen_random_uuid(), $1, 'Ruled')`, [ruled]);
afterAll(async () => {
  await provider.close();
  await rm(folder, { recursive: true });
});
afterEach(() => {
  provider.changeToken = null;
  provider.trouble = null;
});

type Members = z.infer<typeof ListTeamMembersResponse>;

let count = 0;
/** Makes a person of the provider; returns the subject. */
const newAccount = (groups: readonly string[], more: Partial<Account> = {}): string => {
  count += 1;
  const subject = `person${count}`;
  provider.accounts.set(subject, { name: `Person ${count}`, email: 'same@example.com', groups, ...more });
  return subject;
};

let addresses = 0;
/** Returns the headers of a page in a browser with an address of its own, as a proxy reports it. */
const newPage = () => {
  addresses += 1;
  return { origin: service.baseUrl, 'x-forwarded-for': `10.0.${Math.floor(addresses / 250)}.${addresses % 250}` };
};
const begin = async (body: Record<string, unknown> = {}, page = newPage()) => {
  const answer = await service.request<{ url: string }>('POST', '/sign-on', {
    key: null,
    headers: page,
    body: { provider: 'acme', ...body },
  });
  return { ...answer, url: answer.body?.url ?? '', cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' };
};
const finish = async (
  cookie: string,
  query: string,
  headers: Record<string, string> = {},
): Promise<TestAnswer<{ next?: string; display_name: string; detail?: string }>> =>
  await service.request('POST', '/browser-sessions', {
    key: null,
    headers: { ...newPage(), cookie, ...headers },
    body: { sign_on: query },
  });
const queryOf = async (url: string, subject: string) => (await provider.signIn(url, subject)).search.slice(1);
const signOn = async (subject: string, body: Record<string, unknown> = {}) => {
  const { cookie, url } = await begin(body);
  return await finish(cookie, await queryOf(url, subject));
};

/** Returns the headers of a page of the session that the answer has made. */
function sessionOf(answer: TestAnswer): PageHeaders {
  expect(answer.status, answer.text).toBe(200);
  const [, session = ''] = answer.headers.getSetCookie();
  return pageHeaders(service, { ...answer, headers: new Headers({ 'set-cookie': session }) });
}
const get = async <T>(headers: Record<string, string>, url: string) =>
  await service.request<T>('GET', url, { key: null, headers });
const roleIn = async (headers: Record<string, string>, teamUid = ruled) =>
  (await get<Session>(headers, '/session')).body?.teams.find(({ uid }) => uid === teamUid)?.role;
const newKeyOf = async (headers: Record<string, string>) =>
  (
    await service.request<{ key: string }>('POST', '/keys', {
      key: null,
      headers,
      body: { name: 'K', kind: 'personal' },
    })
  ).body.key;
const works = async (key: string) => (await service.request('GET', '/keys', { key })).status === 200;

/** Asks the providers for everybody, as the loop does when the time has come. */
async function confirmAll(): Promise<void> {
  await db.query(`UPDATE sign_on_identities SET next_check_at = now() WHERE next_check_at IS NOT NULL`);
  await confirmPeople(service.deps).work(new AbortController().signal);
}

describe('a first sign-in', () => {
  test('makes the person with the highest role of the rules, and opens the page that was asked for', async () => {
    expect((await service.request('GET', '/sign-on', { key: null })).body).toEqual({
      providers: [
        { id: 'acme', name: 'Acme' },
        { id: 'gone', name: 'Gone' },
      ],
    });
    const subject = newAccount(['g-readers', 'g-leads', 'g-makers'], { name: 'Ada\u0007 \u202eLovelace' });
    const answer = await signOn(subject, { next: '/runs?a=1#b' });
    expect(answer.body).toMatchObject({ display_name: 'Ada Lovelace', next: '/runs?a=1#b' });
    expect(answer.headers.getSetCookie()[1]).toMatch(/^runyard-\d+=ryk_[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict/);
    const headers = sessionOf(answer);
    const { body } = await get<Session>(headers, '/session');
    expect(body).toMatchObject({
      kind: 'session',
      user: { display_name: 'Ada Lovelace', email: 'same@example.com' },
      teams: [{ uid: ruled, role: 'admin', is_current: true }],
    });
  });

  test('is the same person the next time, and another person with the same address is not', async () => {
    const uidOf = async (subject: string) =>
      (await get<Session>(sessionOf(await signOn(subject)), '/session')).body.user.uid;
    const subject = newAccount(['g-makers']);
    const first = await uidOf(subject);
    provider.accounts.set(subject, { name: 'Renamed', groups: ['g-makers'] });
    expect(await uidOf(subject)).toBe(first);
    expect(await uidOf(newAccount(['g-makers']))).not.toBe(first);
  });

  test('makes one person when two browsers are first', async () => {
    const subject = newAccount(['g-makers']);
    const answers = await Promise.all([signOn(subject), signOn(subject)]);
    const people = await Promise.all(answers.map((each) => get<Session>(sessionOf(each), '/session')));
    expect(new Set(people.map(({ body }) => body.user.uid)).size).toBe(1);
  });

  test('of a person without a team stores nothing of the person', async () => {
    const users = async () => (await db.query('SELECT id FROM users')).length;
    const before = await users();
    const answer = await signOn(newAccount(['g-others']));
    expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('in no team here')]);
    expect(await users()).toBe(before);
  });

  test('accepts an invitation to a team that is managed by hand, once', async () => {
    const team = await teamUidOf(service);
    const invitation = await invite(service, team, 'member');
    const headers = sessionOf(await signOn(newAccount([]), { invitation }));
    expect(await roleIn(headers, team)).toBe('member');
    expect((await signOn(newAccount([]), { invitation })).status).toBe(403);
    const again = await signOn(provider.accounts.keys().toArray().at(-2) ?? '', {
      invitation: await invite(service, team, 'owner'),
    });
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('in the team already')]);
  });
});

describe('a group gives its role only under its own name', () => {
  test.each([
    ['another case', { groups: ['G-leads'] }],
    ['white space around it', { groups: [' g-leads '] }],
    ['a list in one text', { groups: ['g-others,g-leads'] }],
    ['a path that ends with it', { groups: ['/g-leads'] }],
    ['another claim', { groups: [], more: { group_names: ['g-leads'], roles: ['g-leads'] } }],
    ['a thing that is no text', { groups: [{ id: 'g-leads' }, ['g-leads']] as never }],
  ])('not for %s', async (_name, account) => {
    expect((await signOn(newAccount([], account))).status).toBe(403);
  });

  test('not for the group of another provider', async () => {
    expect(await roleIn(sessionOf(await signOn(newAccount(['g-makers']))))).toBe('member');
  });
});

describe('the answer of a provider', () => {
  test('signs in once: neither the same answer nor its code in another browser works', async () => {
    const subject = newAccount(['g-makers']);
    const { cookie, url } = await begin();
    const query = await queryOf(url, subject);
    const other = await begin();
    const otherState = new URL(other.url).searchParams.get('state') ?? '';
    const code = new URLSearchParams(query).get('code') ?? '';
    sessionOf(await finish(cookie, query));
    expect((await finish(cookie, query)).status).toBe(403);
    expect((await finish(other.cookie, `code=${code}&state=${otherState}&iss=${provider.issuer}`)).status).toBe(403);
  });

  test('signs in once, also if the provider gives two codes for one request', async () => {
    const subject = newAccount(['g-makers']);
    const { cookie, url } = await begin();
    const [one, two] = [await queryOf(url, subject), await queryOf(url, subject)];
    sessionOf(await finish(cookie, one));
    const again = await finish(cookie, two);
    expect([again.status, again.body.detail]).toEqual([403, expect.stringContaining('was used already')]);
  });

  test('works only in the browser that began', async () => {
    const subject = newAccount(['g-makers']);
    const { url } = await begin();
    const query = await queryOf(url, subject);
    const victim = await begin();
    for (const cookie of ['', victim.cookie, 'runyard-1-sign-on=forged', `${victim.cookie}x`])
      expect((await finish(cookie, query)).status).toBe(403);
    const headers: Record<string, string>[] = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }];
    for (const each of headers) expect((await finish(victim.cookie, query, each)).status).toBe(403);
  });

  test('is refused with the error that the provider sends', async () => {
    const { cookie, url } = await begin();
    const answer = await finish(cookie, await queryOf(url, 'nobody'));
    expect([answer.status, answer.body.detail]).toEqual([
      403,
      expect.stringContaining('refused the sign-in (access_denied)'),
    ]);
  });

  test('is refused if it names another issuer, or another state', async () => {
    const subject = newAccount(['g-makers']);
    for (const [name, value] of [
      ['iss', 'http://127.0.0.1:9'],
      ['state', 'other'],
    ] as const) {
      const { cookie, url } = await begin();
      const query = new URLSearchParams(await queryOf(url, subject));
      query.set(name, value);
      expect((await finish(cookie, query.toString())).status).toBe(403);
    }
  });

  test('may come from a clock that is half a minute off, and not from one that is ten minutes off', async () => {
    const subject = newAccount(['g-makers']);
    const outcomes: number[] = [];
    for (const seconds of [20, -80, 600, -600]) {
      provider.changeToken = ({ iat, ...claims }) => {
        const at = Number(iat) + seconds;
        return signToken({ ...claims, iat: at, nbf: at, exp: at + 60 }, provider.key());
      };
      outcomes.push((await signOn(subject)).status);
    }
    expect(outcomes).toEqual([200, 200, 403, 403]);
  });

  test('is accepted after the provider has replaced its keys', async () => {
    const subject = newAccount(['g-makers']);
    sessionOf(await signOn(subject));
    provider.rotateKeys();
    sessionOf(await signOn(subject));
    provider.rotateKeys();
    sessionOf(await signOn(subject));
  });

  test.each<[string, (claims: Record<string, unknown>) => string]>([
    ['is for another service', (claims) => signToken({ ...claims, aud: 'other' }, provider.key())],
    ['is for several services', (claims) => signToken({ ...claims, aud: ['other', 'more'] }, provider.key())],
    [
      'is for this service and others, and was asked for by another',
      (claims) => signToken({ ...claims, aud: [clientId, 'other'], azp: 'other' }, provider.key()),
    ],
    ['is of another issuer', (claims) => signToken({ ...claims, iss: 'https://evil.example' }, provider.key())],
    ['has the nonce of another sign-in', (claims) => signToken({ ...claims, nonce: 'other' }, provider.key())],
    ['has no nonce', ({ nonce: _nonce, ...claims }) => signToken(claims, provider.key())],
    ['is about another person than the userinfo', (claims) => signToken({ ...claims, sub: 'person1' }, provider.key())],
    ['is signed by a stranger', (claims) => signToken(claims, { ...newSigningKey(), kid: provider.key().kid })],
    ['is signed with the secret of the client', (claims) => weakToken(claims, 'HS256')],
    ['is not signed', (claims) => weakToken(claims, 'none')],
  ])('is refused if its token %s', async (_name, changeToken) => {
    provider.changeToken = changeToken;
    const answer = await signOn(newAccount(['g-leads']));
    expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('is not valid')]);
  });
});

test('a provider that is slow, broken or away is answered with 503 within its time', async () => {
  const away = await begin({ provider: 'gone' });
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5']);
  const subject = newAccount(['g-makers']);
  for (const trouble of ['silence', 500, 200] as const) {
    const { cookie, url } = await begin();
    const query = await queryOf(url, subject);
    provider.trouble = { path: /^\/token/, with: trouble };
    const start = performance.now();
    expect((await finish(cookie, query)).status).toBe(503);
    expect(performance.now() - start).toBeLessThan(3_000);
    provider.trouble = null;
    // The code was not used, so that the page can try again.
    sessionOf(await finish(cookie, query));
  }
});

test('an address that signs in too often is refused for a while, before the provider is called', async () => {
  const page = newPage();
  const { cookie } = await begin({}, page);
  for (let sent = 1; sent < signOnsPerMinute.address; sent += 1) await begin({}, page);
  const before = provider.requests.length;
  const over = await begin({}, page);
  expect([over.status, over.text]).toEqual([429, expect.stringContaining('Without a key, this address')]);
  expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await finish(cookie, 'code=a', page)).status).toBe(429);
  expect(provider.requests.length).toBe(before);
  expect((await begin()).status).toBe(200);
});

test('a sign-in is exchanged a few times only, also if the provider fails', async () => {
  const { cookie, url } = await begin();
  const query = await queryOf(url, newAccount(['g-makers']));
  provider.trouble = { path: /^\/token/, with: 500 };
  for (let sent = 0; sent < maxExchangesPerSignOn; sent += 1) expect((await finish(cookie, query)).status).toBe(503);
  const before = provider.requests.length;
  const answer = await finish(cookie, query);
  expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('tried too often')]);
  expect(provider.requests.length).toBe(before);
});

test('the keys and the userinfo of a slow provider are waited for within the same time', async () => {
  const subject = newAccount(['g-makers']);
  for (const path of [/^\/jwks/, /^\/me/]) {
    const { cookie, url } = await begin();
    const query = await queryOf(url, subject);
    provider.trouble = { path, with: 'silence' };
    const start = performance.now();
    expect((await finish(cookie, query)).status).toBe(503);
    expect(performance.now() - start).toBeLessThan(3_000);
    provider.trouble = null;
    sessionOf(await signOn(subject));
  }
});

test('a sign-in leads only to pages of this service', async () => {
  const elsewhere = [
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '/a\nb',
    '/a\\b',
    '',
  ];
  for (const next of elsewhere) expect((await begin({ next })).status, next).toBe(400);
  const { url } = await begin();
  expect(new URL(url).searchParams.get('redirect_uri')).toBe(`${service.baseUrl}/sign-in`);
  const forged = await service.app.inject({
    method: 'POST',
    url: '/api/v1/sign-on',
    headers: { origin: 'https://evil.example', host: 'evil.example' },
    payload: { provider: 'acme' },
  });
  expect([forged.statusCode, forged.body]).toEqual([
    403,
    expect.stringContaining(`Open this service at ${service.baseUrl}`),
  ]);
  for (const origin of ['', 'https://evil.example'])
    expect(
      (await service.request('POST', '/sign-on', { key: null, headers: { origin }, body: { provider: 'acme' } }))
        .status,
    ).toBe(403);
  expect((await begin({ provider: 'other' })).status).toBe(404);
});

describe('a team that rules manage', () => {
  test('is not managed by hand', async () => {
    const lead = sessionOf(await signOn(newAccount(['g-leads'])));
    const { body } = await get<Members>(lead, `/teams/${ruled}/members`);
    expect(body.managed_by).toBe('rules');
    expect(body.rules?.slice(2)).toEqual([
      { provider: 'Acme', group: 'g-leads', role: 'admin' },
      { provider: 'Gone', group: 'g-makers', role: 'owner' },
    ]);
    const uid = body.members.find(({ role }) => role === 'member')?.user.uid;
    const send = async (method: string, url: string, sent?: unknown) =>
      await service.problem(409, method, url, { key: null, headers: lead, ...(sent ? { body: sent } : {}) });
    await send('PATCH', `/teams/${ruled}/members/${uid}`, { role: 'viewer' });
    await send('DELETE', `/teams/${ruled}/members/${uid}`);
    await send('POST', `/teams/${ruled}/invitations`, { role: 'member' });
    const own = await teamUidOf(service);
    const byHand = (await service.request<Members>('GET', `/teams/${own}/members`)).body;
    expect([byHand.managed_by, byHand.rules]).toEqual(['hand', undefined]);
  });

  test('loses people and invitations that were made by hand before, and keeps the operator', async () => {
    const own = await teamUidOf(service);
    const person = await newPerson(service, own, 'member');
    const open = await invite(service, own, 'member');
    await endManagementByHand(db, []);
    expect(await works(person.key)).toBe(true);
    expect(await endManagementByHand(db, [own, 'x'.repeat(22)])).toEqual(['x'.repeat(22)]);
    await expect.poll(() => works(person.key)).toBe(false);
    expect(await works(service.key)).toBe(true);
    expect(
      (await service.request('POST', '/team-invitations/accept', { key: null, body: { key: open, display_name: 'A' } }))
        .status,
    ).toBe(403);
  });

  test('refuses invitations that were made before the rules', async () => {
    const lead = sessionOf(await signOn(newAccount(['g-leads'])));
    await db.query(
      `INSERT INTO team_invitations (id, team_id, hash, role, invited_by, expires_at)
       SELECT gen_random_uuid(), t.id, sha256('ryi_early'), 'owner', m.user_id, now() + interval '1 day'
       FROM teams t JOIN team_members m ON m.team_id = t.id WHERE t.uid = $1 LIMIT 1`,
      [ruled],
    );
    const body = { key: 'ryi_early', display_name: 'A' };
    expect((await service.request('POST', '/team-invitations/accept', { key: null, body })).status).toBe(409);
    const join = { key: null, headers: lead, body: { key: 'ryi_early' } };
    expect((await service.request('POST', '/team-invitations/join', join)).status).toBe(409);
  });
});

describe('when the provider is asked again', () => {
  test('a person who has left the groups loses the team, its keys and sessions', async () => {
    const subject = newAccount(['g-makers']);
    const headers = sessionOf(await signOn(subject));
    const key = await newKeyOf(headers);
    await confirmAll();
    expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
    provider.accounts.set(subject, { name: 'P', groups: ['g-readers'] });
    await confirmAll();
    expect([await works(key), await roleIn(headers)]).toEqual([true, 'viewer']);
    provider.accounts.set(subject, { name: 'P', groups: [] });
    await confirmAll();
    await expect.poll(async () => [await works(key), (await get(headers, '/session')).status]).toEqual([false, 401]);
    provider.accounts.set(subject, { name: 'P', groups: ['g-makers'] });
    sessionOf(await signOn(subject));
    expect(await works(key)).toBe(false);
  });

  test('a person whom it refuses loses keys and sessions in all teams at once, also a key that is just being made, and then what rules gave', async () => {
    const subject = newAccount(['g-makers']);
    const own = await teamUidOf(service);
    const headers = sessionOf(await signOn(subject, { invitation: await invite(service, own, 'member') }));
    const key = await newKeyOf(headers);
    const [identity] = await db.query<{ user_id: string }>(
      'SELECT user_id FROM sign_on_identities WHERE subject = $1',
      [subject],
    );
    const teams = async () =>
      (await db.query('SELECT team_id FROM team_members WHERE user_id = $1', [identity?.user_id])).length;
    provider.accounts.delete(subject);
    await confirmAll();
    await expect.poll(async () => [await works(key), (await get(headers, '/session')).status]).toEqual([false, 401]);
    expect(await teams()).toBe(2);
    // A request that was let in before the refusal inserts its key after it.
    const late = newRawKey();
    await db.query(
      `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four)
       SELECT gen_random_uuid(), $1, 'personal', 'Late', id, $2, '', '' FROM teams WHERE uid = $3`,
      [hashKey(late), identity?.user_id, own],
    );
    expect(await works(late)).toBe(false);
    await confirmPeople(service.deps).work(new AbortController().signal);
    expect(await teams()).toBe(1);
    expect(await db.query('SELECT FROM api_keys WHERE user_id = $1', [identity?.user_id])).toEqual([]);
    const [row] = await db.query('SELECT refresh_token, next_check_at FROM sign_on_identities WHERE subject = $1', [
      subject,
    ]);
    expect(row).toEqual({ refresh_token: null, next_check_at: null });
  });

  test('keys and sessions last until the bound while it is away, and work again afterwards', async () => {
    const subject = newAccount(['g-makers']);
    const headers = sessionOf(await signOn(subject));
    const key = await newKeyOf(headers);
    for (const trouble of ['silence', 500] as const) {
      provider.trouble = { path: /^\/token/, with: trouble };
      await confirmAll();
      expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
    }
    await db.query(`UPDATE sign_on_identities SET confirmed_until = now() WHERE subject = $1`, [subject]);
    await db.query(`SELECT pg_notify('runyard_keys', '')`);
    await expect.poll(() => works(key)).toBe(false);
    await confirmAll();
    expect((await get(headers, '/session')).status).toBe(401);
    provider.trouble = null;
    await confirmAll();
    await expect.poll(() => works(key), { timeout: 8_000 }).toBe(true);
  });

  test('a forged token confirms nobody', async () => {
    const subject = newAccount(['g-readers']);
    const headers = sessionOf(await signOn(subject));
    const until = async () =>
      (
        await db.query<{ at: string }>(
          'SELECT confirmed_until::text AS at FROM sign_on_identities WHERE subject = $1',
          [subject],
        )
      )[0]?.at;
    const before = await until();
    provider.changeToken = (claims) => signToken({ ...claims, sub: 'person1', groups: ['g-leads'] }, provider.key());
    await confirmAll();
    provider.changeToken = (claims) => weakToken({ ...claims, groups: ['g-leads'] }, 'none');
    await confirmAll();
    expect([await until(), await roleIn(headers)]).toEqual([before, 'viewer']);
  });

  test('a provider that does not answer is asked for one batch of people in a round', async () => {
    await confirmAll();
    const { vault } = service.deps;
    const ids = Array.from({ length: 50 }, () => randomUUIDv7());
    await db.query(
      `INSERT INTO users (id, uid, display_name) SELECT id, 'slow' || id, 'Slow' FROM unnest($1::uuid[]) id`,
      [ids],
    );
    for (const id of ids)
      await db.query(
        `INSERT INTO sign_on_identities (id, issuer, subject, user_id, refresh_token, vault_key_id, confirmed_until, next_check_at)
         VALUES ($1::uuid, $2, $1::uuid::text, $1::uuid, $3, $4, now() + interval '1 day', now())`,
        [id, provider.issuer, vault.seal(sealPurpose(id), 'a token'), vault.keyId],
      );
    provider.trouble = { path: /^\/token/, with: 'silence' };
    const before = provider.requests.filter((each) => each === '/token').length;
    await confirmPeople(service.deps).work(new AbortController().signal);
    expect(provider.requests.filter((each) => each === '/token').length - before).toBe(20);
    const [due] = await db.query<{ count: string }>(
      'SELECT count(*) FROM sign_on_identities WHERE next_check_at <= now()',
    );
    expect(Number(due?.count)).toBe(0);
    await db.query('DELETE FROM users WHERE id = ANY($1::uuid[])', [ids]);
  });

  test('two processes use a refresh token once', async () => {
    await confirmAll();
    await db.query(`UPDATE sign_on_identities SET next_check_at = now() WHERE next_check_at IS NOT NULL`);
    const before = provider.requests.filter((each) => each === '/token').length;
    const { signal } = new AbortController();
    await Promise.all([1, 2, 3].map(() => confirmPeople(service.deps).work(signal)));
    const [due] = await db.query<{ count: string }>(
      'SELECT count(*) FROM sign_on_identities WHERE refresh_token IS NOT NULL',
    );
    expect(provider.requests.filter((each) => each === '/token').length - before).toBe(Number(due?.count));
  });
});

test('a session of a sign-on ends with the sign-out, here or everywhere', async () => {
  const subject = newAccount(['g-makers']);
  const first = sessionOf(await signOn(subject));
  const second = sessionOf(await signOn(subject));
  const third = sessionOf(await signOn(subject));
  const statuses = async () =>
    await Promise.all([first, second, third].map(async (each) => (await get(each, '/session')).status));
  await service.request('DELETE', '/browser-sessions/current', { key: null, headers: first });
  await expect.poll(statuses).toEqual([401, 200, 200]);
  await service.request('DELETE', '/browser-sessions', { key: null, headers: second });
  await expect.poll(statuses).toEqual([401, 401, 401]);
});

test('secrets of a sign-on are in no log and not in the database', async () => {
  const { cookie, url } = await begin();
  const query = await queryOf(url, newAccount(['g-makers']));
  const headers = sessionOf(await finish(cookie, query));
  const rows = await db.query<{ text: string }>('SELECT row_to_json(i)::text AS text FROM sign_on_identities i');
  const all = [...service.logged, ...rows.map(({ text }) => text)].join('\n');
  const code = new URLSearchParams(query).get('code') ?? '';
  for (const secret of [code, cookie.split('=')[1] ?? '', headers.cookie.split('=')[1] ?? '', clientSecret])
    expect(all).not.toContain(secret);
});
