import { maxExchangesPerSignOn, signOnsPerMinute } from '@runyard/contract/limits';
import type { Session } from '@runyard/contract/team/browser-sessions';
import { describe, expect, test } from 'vitest';
import { clientId, newSigningKey, signToken, weakToken } from '../../../../test/identity-provider.ts';
import { invite, teamUidOf } from '../../../../test/people.ts';
import { openSignOnService, ruled } from '../../../../test/sign-on-service.ts';

const { service, provider, newAccount, newPage, begin, finish, queryOf, signOn, sessionOf, get, roleIn } =
  await openSignOnService();
const { db } = service.deps;

describe('a first sign-in', () => {
  test('creates the person with the highest role of the rules, and opens the requested page', async () => {
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

  test('creates a person, later sign-ins of the account find this person, and another account with the same address does not', async () => {
    const uidOf = async (subject: string) =>
      (await get<Session>(sessionOf(await signOn(subject)), '/session')).body.user.uid;
    const subject = newAccount(['g-makers']);
    const first = await uidOf(subject);
    provider.accounts.set(subject, { name: 'Renamed', groups: ['g-makers'] });
    expect(await uidOf(subject)).toBe(first);
    expect(await uidOf(newAccount(['g-makers']))).not.toBe(first);
  });

  test('in two browsers at the same time creates only one person', async () => {
    const subject = newAccount(['g-makers']);
    const answers = await Promise.all([signOn(subject), signOn(subject)]);
    const people = await Promise.all(answers.map((each) => get<Session>(sessionOf(each), '/session')));
    expect(new Set(people.map(({ body }) => body.user.uid)).size).toBe(1);
  });

  test('of a person without a team does not store the person', async () => {
    const users = async () => (await db.query('SELECT id FROM users')).length;
    const before = await users();
    const answer = await signOn(newAccount(['g-others']));
    expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('in no team here')]);
    expect(await users()).toBe(before);
  });

  test('accepts an invitation to a team without rules, but only once', async () => {
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

describe('a rule gives its role only to a group with exactly the name in the rule', () => {
  test.each([
    ['another case', { groups: ['G-leads'] }],
    ['white space around it', { groups: [' g-leads '] }],
    ['a list in one text', { groups: ['g-others,g-leads'] }],
    ['a path that ends with it', { groups: ['/g-leads'] }],
    ['another claim', { groups: [], more: { group_names: ['g-leads'], roles: ['g-leads'] } }],
    ['a list in the list', { groups: [['g-leads'], { more: 'g-leads' }] as never }],
  ])('and gives no role for %s', async (_name, account) => {
    expect((await signOn(newAccount([], account))).status).toBe(403);
  });

  test('and only to an account of the provider in the rule', async () => {
    expect(await roleIn(sessionOf(await signOn(newAccount(['g-makers']))))).toBe('member');
  });
});

test('two tabs of a browser can sign in at the same time, and each opens its own page', async () => {
  const page = newPage();
  const first = await begin({ next: '/runs/a' }, page);
  const second = await begin({ next: '/runs/b' }, { ...page, ...{ cookie: first.cookie } });
  const cookies = `${first.cookie}; ${second.cookie}`;
  const subject = newAccount(['g-makers']);
  for (const { url, next } of [
    { url: first.url, next: '/runs/a' },
    { url: second.url, next: '/runs/b' },
  ]) {
    const answer = await finish(cookies, await queryOf(url, subject));
    expect([answer.status, answer.body.next]).toEqual([200, next]);
  }
});

test('an answer for a state that did not begin in this browser does not end the sign-ins of the browser', async () => {
  const { cookie, url } = await begin();
  const refused = await finish(cookie, 'code=a&state=other');
  expect([refused.status, refused.headers.getSetCookie()]).toEqual([403, []]);
  sessionOf(await finish(cookie, await queryOf(url, newAccount(['g-makers']))));
});

test('a browser keeps the latest sign-ins only', async () => {
  const begun: string[] = [];
  let dropped: string[] = [];
  for (let count = 0; count < 5; count += 1) {
    const answer = await begin({}, { ...newPage(), ...{ cookie: begun.join('; ') } });
    begun.push(answer.cookie);
    dropped = answer.headers.getSetCookie().slice(1);
  }
  expect(dropped).toEqual([expect.stringMatching(new RegExp(`^${begun[0]?.split('=')[0]}=; .*Max-Age=0`))]);
});

test('a sign-in by rules is refused if the answer has no groups, and the page and the log give the reason', async () => {
  const answer = await signOn(newAccount([], { groups: undefined as never }));
  const why = 'the answer has no claim groups';
  expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining(why)]);
  expect(service.logged.join('\n')).toContain(why);
});

test('the log has the groups of a person whom no rule names', async () => {
  expect((await signOn(newAccount(['/g-makers', 'x']))).status).toBe(403);
  expect(service.logged.join('\n')).toMatch(/"groups":"2 groups, first \/g-makers, x"/);
});

describe('the answer of a provider', () => {
  test('is refused with both values if its token has another issuer or client', async () => {
    for (const [wrong, values] of [
      [{ aud: 'other' }, ['client other', `client_id ${clientId}`]],
      [{ iss: 'https://evil.example' }, ['issuer https://evil.example', `publishes ${provider.issuer}`]],
    ] as const) {
      provider.changeToken = (claims) => signToken({ ...claims, ...wrong }, provider.key());
      const { detail } = (await signOn(newAccount(['g-leads']))).body;
      for (const value of values) expect(detail).toContain(value);
    }
    provider.changeToken = (claims) => weakToken(claims, 'HS256');
    expect((await signOn(newAccount(['g-leads']))).body.detail).toContain('signed with HS256');
  });

  test('works once: neither the same answer nor its code works again in another browser', async () => {
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

  test("is accepted if the provider's clock is half a minute off, and refused if it is ten minutes off", async () => {
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

test('a sign-in answers 503 in time if the provider is slow, broken or unreachable', async () => {
  const away = await begin({ provider: 'gone' });
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '5']);
  const subject = newAccount(['g-makers']);
  for (const trouble of ['silence', 500, 200] as const) {
    const { cookie, url } = await begin();
    const query = await queryOf(url, subject);
    provider.trouble = { path: /^\/token/, with: trouble };
    const start = performance.now();
    expect((await finish(cookie, query)).status).toBe(503);
    // The default is 10 s.
    expect(performance.now() - start).toBeLessThan(9_000);
    provider.trouble = null;
    // The service has not used up the code, so the same request succeeds when the provider works again.
    sessionOf(await finish(cookie, query));
  }
});

test('an address that signs in too often is refused for a while, before the provider is called', async () => {
  const page = newPage();
  const { cookie, url } = await begin({}, page);
  let over = await begin({}, page);
  let sent = 2;
  // Begin sign-ins until one is refused. On a slow machine, this takes more sign-ins than the limit, because the budget of the address is
  // refilled meanwhile.
  for (; over.status === 200 && sent < 5 * signOnsPerMinute.address; sent += 1) over = await begin({}, page);
  expect(sent).toBeGreaterThan(signOnsPerMinute.address);
  expect([over.status, over.text]).toEqual([429, expect.stringContaining('Without a key, this address')]);
  expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0);
  const state = new URL(url).searchParams.get('state');
  const tryToFinish = async () => {
    const before = provider.requests.length;
    const { status } = await finish(cookie, `code=a&state=${state}`, page);
    return { status, requests: provider.requests.length - before };
  };
  let finished = await tryToFinish();
  for (; finished.status !== 429 && sent < 10 * signOnsPerMinute.address; sent += 1) {
    await begin({}, page);
    finished = await tryToFinish();
  }
  expect(finished).toEqual({ status: 429, requests: 0 });
  expect((await begin()).status).toBe(200);
});

test('the code of a sign-in is sent to the provider only a few times, also if the provider fails', async () => {
  const { cookie, url } = await begin();
  const query = await queryOf(url, newAccount(['g-makers']));
  provider.trouble = { path: /^\/token/, with: 500 };
  for (let sent = 0; sent < maxExchangesPerSignOn; sent += 1) expect((await finish(cookie, query)).status).toBe(503);
  const before = provider.requests.length;
  const answer = await finish(cookie, query);
  expect([answer.status, answer.body.detail]).toEqual([403, expect.stringContaining('tried too often')]);
  expect(provider.requests.length).toBe(before);
});

test('the time limit of a sign-in also includes the keys and the userinfo of a slow provider', async () => {
  const subject = newAccount(['g-makers']);
  for (const path of [/^\/jwks/, /^\/me/]) {
    const { cookie, url } = await begin();
    const query = await queryOf(url, subject);
    provider.trouble = { path, with: 'silence' };
    const start = performance.now();
    expect((await finish(cookie, query)).status).toBe(503);
    // The default is 10 s.
    expect(performance.now() - start).toBeLessThan(9_000);
    provider.trouble = null;
    sessionOf(await signOn(subject));
  }
});

test('a sign-in redirects only to pages of this service', async () => {
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
