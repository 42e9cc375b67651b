/**
 * Tests sign-on with the answers that the documentation of public providers describes: which claims the identity token and the userinfo
 * endpoint have, how groups look, and what the answer to a refresh has.
 */
import type { Session } from '@runyard/contract/team/browser-sessions';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clientId, clientSecret } from '../../../../test/identity-provider.ts';
import { invite, teamUidOf } from '../../../../test/people.ts';
import { ofEntra, personas, startPersona } from '../../../../test/personas.ts';
import { browsersAt, openRuledService, ruled } from '../../../../test/sign-on-service.ts';

const started = await Promise.all(personas.map(async (persona) => ({ persona, ...(await startPersona(persona)) })));
const service = await openRuledService(
  JSON.stringify({
    providers: started.map(({ persona: { id, settings }, provider: { issuer } }) => ({
      ...{ id, name: id, issuer, client_id: clientId, client_secret: clientSecret, timeout_seconds: 10 },
      ...settings,
    })),
    teams: [
      {
        team: ruled,
        rules: personas.flatMap(({ id, groups: [member, viewer] }) => [
          { provider: id, group: member, role: 'member' },
          { provider: id, group: viewer, role: 'viewer' },
        ]),
      },
    ],
  }),
);
for (const { provider } of started) provider.register(`${service.baseUrl}/sign-in`);
afterAll(async () => void (await Promise.all(started.map(({ provider }) => provider.close()))));
afterEach(() => {
  for (const { reset } of started) reset();
});
const { db } = service.deps;
beforeEach(async () => {
  // A test confirms only its own people.
  await db.query('UPDATE sign_on_identities SET next_check_at = NULL');
});

/** Returns the persona, its provider, and functions that sign in there. */
function useProvider(id: string) {
  const found = started.find(({ persona }) => persona.id === id);
  if (found === undefined) throw new Error(`no persona ${id}`);
  const { provider } = found;
  const browsers = browsersAt(service, id, provider.signIn);
  const setGroups = (subject: string, ...groups: string[]) =>
    provider.accounts.set(subject, { name: 'Ada Lovelace', groups });
  const signInAs = async (subject: string, ...groups: string[]) => {
    setGroups(subject, ...groups);
    const headers = browsers.sessionOf(await browsers.signOn(subject));
    return { headers, key: await browsers.newKeyOf(headers) };
  };
  const endTime = async (subject: string) => {
    await db.query('UPDATE sign_on_identities SET confirmed_until = now() WHERE issuer = $1 AND subject = $2', [
      provider.issuer,
      subject,
    ]);
    await db.query(`SELECT pg_notify('runyard_keys', '')`);
  };
  return { ...found, ...browsers, setGroups, signInAs, endTime };
}

describe.each(personas)(
  'with the answers of $id',
  ({ id, groups: [member, viewer, other], omitsNone, shown: expected }) => {
    const { confirmAll, get, roleIn, signInAs, setGroups, signOn, works, endTime } = useProvider(id);

    test('a person signs in with the role of a group, and gets the role of another group at the next check', async () => {
      const { headers, key } = await signInAs('mover', member, other);
      const { user, teams } = (await get<Session>(headers, '/session')).body;
      expect([user.display_name, user.email]).toEqual(expected);
      expect(teams.map(({ uid, role }) => [uid, role])).toEqual([[ruled, 'member']]);
      await confirmAll();
      expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
      setGroups('mover', viewer);
      await confirmAll();
      expect([await works(key), await roleIn(headers)]).toEqual([true, 'viewer']);
    });

    test('a person who leaves the groups that the rules name loses the keys at the next check', async () => {
      const { key } = await signInAs('leaver', member);
      setGroups('leaver', other);
      await confirmAll();
      await expect.poll(() => works(key)).toBe(false);
      expect((await signOn('leaver')).status).toBe(403);
    });

    test(`a person who leaves all groups loses the keys ${omitsNone ? 'at the time limit' : 'at the next check'}`, async () => {
      const { headers, key } = await signInAs('loser', member);
      setGroups('loser');
      await confirmAll();
      if (omitsNone) {
        expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
        await endTime('loser');
      }
      await expect.poll(() => works(key)).toBe(false);
    });
  },
);

/** Returns in how many hours the keys of a person stop to work without a further confirmation. */
async function hoursLeft(issuer: string, subject: string): Promise<number> {
  const [row] = await db.query<{ hours: number }>(
    `SELECT (extract(epoch FROM confirmed_until - now()) / 3600)::float AS hours FROM sign_on_identities WHERE issuer = $1 AND subject = $2`,
    [issuer, subject],
  );
  return row?.hours ?? 0;
}
const leaveOneHour = async (subject: string) =>
  await db.query(`UPDATE sign_on_identities SET confirmed_until = now() + interval '1 hour' WHERE subject = $1`, [
    subject,
  ]);

describe('Entra', () => {
  const { provider, sign, confirmAll, roleIn, signInAs, setGroups, signOn, works, persona } =
    useProvider('entra-groups');
  const [member] = persona.groups;
  /** The answer about a person in more than 200 groups. */
  const overage = () => ({
    ...ofEntra,
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: 'https://graph.example/users/690222be/getMemberObjects' } },
  });

  test('a person in too many groups keeps the role at a check, and a sign-in is refused with the reason', async () => {
    const { headers, key } = await signInAs('joiner', member);
    provider.changeToken = (claims) => sign(claims, overage);
    await leaveOneHour('joiner');
    await confirmAll();
    expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
    expect(await hoursLeft(provider.issuer, 'joiner')).toBeLessThan(1);
    setGroups('collector', member);
    const { status, body } = await signOn('collector');
    expect([status, body.detail]).toEqual([403, expect.stringContaining('too many groups (_claim_names)')]);
  });
});

describe('Okta', () => {
  const { provider, sign, confirmAll, roleIn, signInAs, setGroups, works } = useProvider('okta');

  test('groups that only the userinfo endpoint has after a refresh decide the role', async () => {
    const { headers, key } = await signInAs('reader', 'Runyard Makers');
    const { changeAnswer } = provider;
    provider.changeToken = (claims) => sign(claims, () => ({ ver: 1 }));
    provider.changeAnswer = (from, given) => ({
      ...changeAnswer?.(from, given),
      ...(from === 'person' ? { groups: provider.accounts.get('reader')?.groups } : {}),
    });
    setGroups('reader', 'Runyard Readers');
    await confirmAll();
    expect([await works(key), await roleIn(headers)]).toEqual([true, 'viewer']);
  });

  test('a lost answer has no effect within the time in which the earlier refresh token works', async () => {
    const { headers } = await signInAs('unlucky', 'Runyard Makers');
    provider.trouble = { path: /^\/token/, with: 'loss' };
    await confirmAll();
    provider.trouble = null;
    await leaveOneHour('unlucky');
    await confirmAll();
    expect(await roleIn(headers)).toBe('member');
    expect(await hoursLeft(provider.issuer, 'unlucky')).toBeGreaterThan(23);
  });
});

describe('Authentik', () => {
  const { provider, confirmAll, signInAs, signOn, sessionOf, works } = useProvider('authentik');

  test('a lost answer with a new refresh token suspends nobody before the time limit', async () => {
    const { key } = await signInAs('unlucky', 'makers');
    await confirmAll();
    provider.trouble = { path: /^\/token/, with: 'loss' };
    await confirmAll();
    provider.trouble = null;
    await leaveOneHour('unlucky');
    await confirmAll();
    expect(await works(key)).toBe(true);
    expect(await hoursLeft(provider.issuer, 'unlucky')).toBeLessThan(1);
    sessionOf(await signOn('unlucky'));
    expect(await hoursLeft(provider.issuer, 'unlucky')).toBeGreaterThan(23);
  });
});

describe('Google', () => {
  const { provider, begin, confirmAll, finish, queryOf, sessionOf, signInAs, setGroups, newKeyOf, works } =
    useProvider('google');

  test('a sign-in asks for a refresh token by a parameter instead of a scope', async () => {
    const { searchParams } = new URL((await begin()).url);
    expect(Object.fromEntries(searchParams)).toMatchObject({
      scope: 'openid profile email',
      access_type: 'offline',
      prompt: 'consent',
    });
  });

  test('an answer to a refresh without an identity token and a new refresh token confirms the person', async () => {
    const { key } = await signInAs('worker', 'acme.example');
    const { changeAnswer } = provider;
    provider.changeAnswer = (from, { id_token, refresh_token, ...given }) =>
      changeAnswer?.(from, from === 'tokens' ? given : { id_token, refresh_token, ...given }) ?? {};
    for (let round = 0; round < 2; round += 1) {
      await leaveOneHour('worker');
      await confirmAll();
      expect(await hoursLeft(provider.issuer, 'worker')).toBeGreaterThan(23);
    }
    expect(await works(key)).toBe(true);
  });

  test('a person without an organization joins by an invitation, and the checks confirm the person', async () => {
    setGroups('guest');
    const team = await teamUidOf(service);
    const { cookie, url } = await begin({ invitation: await invite(service, team, 'member') });
    const key = await newKeyOf(sessionOf(await finish(cookie, await queryOf(url, 'guest'))));
    await leaveOneHour('guest');
    await confirmAll();
    expect(await hoursLeft(provider.issuer, 'guest')).toBeGreaterThan(23);
    expect(await works(key)).toBe(true);
  });
});
