import { randomUUIDv7 } from 'node:crypto';
import type { ListTeamMembersResponse } from '@runyard/contract/team/teams';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { clientSecret, signToken, weakToken } from '../../../../test/identity-provider.ts';
import { invite, newPerson, teamUidOf } from '../../../../test/people.ts';
import { openSignOnService, ruled } from '../../../../test/sign-on-service.ts';
import { hashKey, newRawKey } from '../../../team/access/keys/key.ts';
import { endManagementByHand } from '../../../team/access/people/by-rules.ts';
import { confirmPeople } from '../../../team/access/sign-on/refresh.ts';
import { sealPurpose } from '../../../team/access/sign-on/sign-in.ts';

const {
  service,
  provider,
  newAccount,
  begin,
  finish,
  queryOf,
  signOn,
  sessionOf,
  get,
  roleIn,
  newKeyOf,
  works,
  confirmAll,
} = await openSignOnService();
const { db } = service.deps;
type Members = z.infer<typeof ListTeamMembersResponse>;

describe('a team that rules manage', () => {
  test('has members and invitations that its administrators cannot change', async () => {
    sessionOf(await signOn(newAccount(['g-makers'])));
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

  test('loses the members and invitations that administrators added before the rules, but keeps the operator', async () => {
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

describe('in the regular check at the provider', () => {
  test('a person who has left the groups loses the team, its keys and sessions; the keys come back with the group within 30 days', async () => {
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
    await expect.poll(() => works(key)).toBe(true);
    expect((await get(headers, '/session')).status).toBe(401);
  });

  test('the keys of a person whom an administrator removes do not come back', async () => {
    const own = await teamUidOf(service);
    const person = await newPerson(service, own, 'member');
    await service.request('DELETE', `/teams/${own}/members/${person.uid}`);
    await expect.poll(() => works(person.key)).toBe(false);
    expect(
      await db.query('SELECT FROM ended_members e JOIN users u ON u.id = e.user_id WHERE u.uid = $1', [person.uid]),
    ).toEqual([]);
  });

  test('a refresh token counts as sent only if a request left the service', async () => {
    const { vault } = service.deps;
    const id = randomUUIDv7();
    await db.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, 'unsent', 'Unsent')`, [id]);
    await db.query(
      `INSERT INTO sign_on_identities (id, issuer, subject, user_id, refresh_token, vault_key_id, confirmed_until, next_check_at)
       VALUES ($1, 'http://127.0.0.1:9', 'unsent', $1, $2, $3, now() + interval '1 day', now())`,
      [id, vault.seal(sealPurpose(id), 'a token'), vault.keyId],
    );
    await confirmPeople(service.deps).work(new AbortController().signal);
    expect(await db.query('SELECT token_sent FROM sign_on_identities WHERE id = $1', [id])).toEqual([
      { token_sent: false },
    ]);
    await db.query('DELETE FROM users WHERE id = $1', [id]);
  });

  test('the keys of a person who comes back after 30 days stay ended', async () => {
    const subject = newAccount(['g-makers']);
    const key = await newKeyOf(sessionOf(await signOn(subject)));
    provider.accounts.set(subject, { name: 'P', groups: [] });
    await confirmAll();
    await expect.poll(() => works(key)).toBe(false);
    await db.query(`UPDATE ended_members SET ended_at = now() - interval '31 days'`);
    provider.accounts.set(subject, { name: 'P', groups: ['g-makers'] });
    sessionOf(await signOn(subject));
    expect(await works(key)).toBe(false);
  });

  test.each([
    ['names no groups', {}],
    ['names the groups elsewhere', { _claim_names: { groups: 'src1' } }],
    ['has a claim of another type', { groups: 7 }],
  ])(
    'a person keeps role and keys if the answer %s, and is suspended when the time limit is reached',
    async (_, claims) => {
      const subject = newAccount(['g-makers']);
      const headers = sessionOf(await signOn(subject));
      const key = await newKeyOf(headers);
      const [before] = await db.query('SELECT confirmed_until::text FROM sign_on_identities WHERE subject = $1', [
        subject,
      ]);
      provider.accounts.set(subject, { name: 'P', groups: undefined as never });
      provider.changeToken = (own) => signToken({ ...own, ...claims }, provider.key());
      await confirmAll();
      expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
      expect(
        await db.query('SELECT confirmed_until::text FROM sign_on_identities WHERE subject = $1', [subject]),
      ).toEqual([before]);
      expect(service.logged.join('\n')).toContain('a provider does not report the groups of a person');
      await db.query(`UPDATE sign_on_identities SET confirmed_until = now() WHERE subject = $1`, [subject]);
      await db.query(`SELECT pg_notify('runyard_keys', '')`);
      await expect.poll(() => works(key)).toBe(false);
      provider.changeToken = null;
      provider.accounts.set(subject, { name: 'P', groups: ['g-makers'] });
      await confirmAll();
      await expect.poll(() => works(key)).toBe(true);
    },
  );

  test('a person whom the provider refuses is suspended at once, also with a key in creation, and gets the keys back by signing in', async () => {
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
    const account = provider.accounts.get(subject);
    provider.accounts.delete(subject);
    await confirmAll();
    await expect.poll(async () => [await works(key), (await get(headers, '/session')).status]).toEqual([false, 401]);
    expect(await teams()).toBe(2);
    // A request that was authorized before the refusal inserts its key after the refusal.
    const late = newRawKey();
    await db.query(
      `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four)
       SELECT gen_random_uuid(), $1, 'personal', 'Late', id, $2, '', '' FROM teams WHERE uid = $3`,
      [hashKey(late), identity?.user_id, own],
    );
    expect(await works(late)).toBe(false);
    await confirmPeople(service.deps).work(new AbortController().signal);
    const [row] = await db.query('SELECT refresh_token, next_check_at FROM sign_on_identities WHERE subject = $1', [
      subject,
    ]);
    expect(row).toEqual({ refresh_token: null, next_check_at: null });
    const audit = await db.query(`SELECT FROM audit_entries WHERE action = 'sign_on.suspend'`);
    expect(audit.length).toBeGreaterThanOrEqual(2);

    if (account !== undefined) provider.accounts.set(subject, account);
    sessionOf(await signOn(subject));
    await expect.poll(() => works(key)).toBe(true);
    expect((await get(headers, '/session')).status).toBe(401);
  });

  test('a refusal that follows a lost answer does not suspend the person before the time limit', async () => {
    const subject = newAccount(['g-makers']);
    const headers = sessionOf(await signOn(subject));
    const key = await newKeyOf(headers);
    const account = provider.accounts.get(subject);
    provider.trouble = { path: /^\/token/, with: 502 };
    await confirmAll();
    const [soon] = await db.query(
      `SELECT next_check_at < now() + interval '10 seconds' AS is_soon FROM sign_on_identities WHERE subject = $1`,
      [subject],
    );
    expect(soon).toEqual({ is_soon: true });
    provider.trouble = null;
    // A provider that rotates tokens refuses the token of the lost answer in the same way.
    provider.accounts.delete(subject);
    await confirmAll();
    expect([await works(key), await roleIn(headers)]).toEqual([true, 'member']);
    const [row] = await db.query(
      `SELECT refresh_token, next_check_at = confirmed_until AS waits FROM sign_on_identities WHERE subject = $1`,
      [subject],
    );
    expect(row).toEqual({ refresh_token: null, waits: true });
    if (account !== undefined) provider.accounts.set(subject, account);
    sessionOf(await signOn(subject));
    await confirmAll();
    expect(await works(key)).toBe(true);
  });

  test('keys and sessions work for a limited time while the provider does not answer, and work again when it answers', async () => {
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
    await expect.poll(() => works(key)).toBe(true);
  });

  test('a forged token does not confirm a person', async () => {
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

  test('a provider that does not answer gets requests for only one batch of people in a round', async () => {
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

test('a sign-out ends a session of a sign-on in this browser or everywhere', async () => {
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
