import { maxInvitations, maxMembers } from '@runyard/contract/limits';
import { ListTeamInvitationsResponse, ListTeamMembersResponse, ListTeamsResponse } from '@runyard/contract/team/teams';
import { describe, expect, test } from 'vitest';
import { pageHeaders, signIn } from '../../../../test/browser-session.ts';
import { invite, newPerson, newTeam, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { openKeyDirectory } from '../../../team/access/keys/directory.ts';

const service = await openTestService();
const first = await teamUidOf(service);
const { db } = service.deps;

const members = async (teamUid: string, key?: string) => {
  const answer = await service.request('GET', `/teams/${teamUid}/members`, key ? { key } : {});
  return ListTeamMembersResponse.parse(answer.body).members;
};
const setRole = (key: string, teamUid: string, userUid: string, role: string) =>
  service.request('PATCH', `/teams/${teamUid}/members/${userUid}`, { key, body: { role } });
const remove = (key: string, teamUid: string, userUid: string) =>
  service.request('DELETE', `/teams/${teamUid}/members/${userUid}`, { key });
const statusOf = async (key: string, headers: Record<string, string> = {}) =>
  (await service.request('GET', '/agent/runs', { key, headers })).status;

describe('a person in two teams', () => {
  test('acts in the team that the header or its alias names, with the role in that team', async () => {
    const second = await newTeam(service);
    const { key } = await newPerson(service, first, 'member');
    expect(
      (await service.problem(403, 'GET', '/agent/runs', { key, headers: { 'X-Team-Uid': second } })).error_code,
    ).toBe('not_authorized');
    const joined = await service.request('POST', '/team-invitations/join', {
      key,
      body: { key: await invite(service, second, 'viewer') },
    });
    expect([joined.status, joined.body]).toMatchObject([200, { uid: second, role: 'viewer', is_current: false }]);
    const { teams } = ListTeamsResponse.parse((await service.request('GET', '/teams', { key })).body);
    expect(teams.map(({ uid, role, is_current }) => [uid, role, is_current])).toEqual([
      [first, 'member', true],
      [second, 'viewer', false],
    ]);
    const runId = await service.newRun({}, key);
    for (const header of ['X-Team-Uid', 'X-Warp-Team-Uid']) {
      const headers = { [header]: second };
      expect((await service.request('GET', '/agent/runs', { key, headers })).body).toMatchObject({ runs: [] });
      await service.problem(404, 'GET', `/agent/runs/${runId}`, { key, headers });
      await service.problem(403, 'POST', '/agent/runs', { key, headers, body: { prompt: 'a' } });
    }
  });

  test('signs in a browser for the team that the header names', async () => {
    const second = await newTeam(service);
    const headers = { 'X-Team-Uid': second };
    const { body } = await service.request<{ code: string }>('POST', '/sign-in-codes', { headers });
    const page = pageHeaders(service, await signIn(service, body));
    const createdRun = await service.request<{ run_id: string }>('POST', '/agent/runs', {
      headers,
      body: { prompt: 'a' },
    });
    const path = `/agent/runs/${createdRun.body.run_id}`;
    expect((await service.request('GET', path, { key: null, headers: page })).status).toBe(200);
    await service.problem(404, 'GET', `/agent/runs/${await service.newRun()}`, { key: null, headers: page });
  });
});

describe('POST /teams', () => {
  test('makes the operator the owner, and refuses all other callers, also owners', async () => {
    const uid = await newTeam(service, 'Payments');
    expect(await members(uid)).toMatchObject([{ role: 'owner' }]);
    const { key } = await newPerson(service, first, 'owner');
    const problem = await service.problem(403, 'POST', '/teams', { key, body: { name: 'Mine' } });
    expect(problem.detail).toContain('operator');
  });

  test('repeats its answer for an Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'team-1' };
    const create = () => service.request<{ uid: string }>('POST', '/teams', { headers, body: { name: 'Once' } });
    expect((await create()).body.uid).toBe((await create()).body.uid);
  });

  test('renames the team only for its administrators', async () => {
    const { key } = await newPerson(service, first, 'member');
    await service.problem(403, 'PATCH', `/teams/${first}`, { key, body: { name: 'X' } });
    const renamed = await service.request('PATCH', `/teams/${first}`, { body: { name: 'Core' } });
    expect(renamed.body).toMatchObject({ uid: first, name: 'Core', role: 'owner' });
  });
});

describe('an invitation', () => {
  test('is valid for one person, and no list contains its key', async () => {
    const key = await invite(service, first, 'member');
    const { body, text } = await service.request('GET', `/teams/${first}/invitations`);
    expect(ListTeamInvitationsResponse.parse(body).invitations.at(-1)).toMatchObject({ role: 'member' });
    expect(text).not.toContain(key);
    const accept = () =>
      service.request('POST', '/team-invitations/accept', { key: null, body: { key, display_name: 'Ada' } });
    const statuses = (await Promise.all([accept(), accept(), accept()])).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, 403, 403]);
  });

  test("gives no role above the inviter's role", async () => {
    const { key } = await newPerson(service, first, 'admin');
    const path = `/teams/${first}/invitations`;
    await service.problem(403, 'POST', path, { key, body: { role: 'owner' } });
    expect((await service.request('POST', path, { key, body: { role: 'admin' } })).status).toBe(201);
    const member = await newPerson(service, first, 'member');
    await service.problem(403, 'POST', path, { key: member.key, body: { role: 'viewer' } });
  });

  test('ends when its inviter loses the rights, when it is withdrawn, and when it expires', async () => {
    const accept = async (key: string) =>
      (await service.request('POST', '/team-invitations/accept', { key: null, body: { key, display_name: 'B' } }))
        .status;
    const demoted = await newPerson(service, first, 'admin');
    const byDemoted = await invite(service, first, 'admin', demoted.key);
    expect((await setRole(service.key, first, demoted.uid, 'member')).status).toBe(200);
    const removed = await newPerson(service, first, 'admin');
    const byRemoved = await invite(service, first, 'admin', removed.key);
    expect((await remove(service.key, first, removed.uid)).status).toBe(200);
    const expired = await invite(service, first, 'member');
    await db.query(`UPDATE team_invitations SET expires_at = now() - interval '1 second'`);
    const path = `/teams/${first}/invitations`;
    const made = await service.request<{ id: string; key: string }>('POST', path, { body: { role: 'member' } });
    expect((await service.request('DELETE', `${path}/${made.body.id}`)).status).toBe(200);
    await service.problem(404, 'DELETE', `${path}/${made.body.id}`);
    for (const key of [byDemoted, byRemoved, expired, made.body.key]) expect(await accept(key)).toBe(403);
  });

  test('is still valid after a person who is already in the team tried to use it', async () => {
    const key = await invite(service, first, 'viewer');
    expect((await service.problem(409, 'POST', '/team-invitations/join', { body: { key } })).error_code).toBe(
      'conflict',
    );
    const body = { key, display_name: 'C', email: 'c@example.com', expires_in: '1d' };
    const accepted = await service.request('POST', '/team-invitations/accept', { key: null, body });
    expect(accepted.body).toMatchObject({
      user: { display_name: 'C', email: 'c@example.com' },
      team: { uid: first, role: 'viewer' },
      expires_at: expect.any(String),
    });
  });
});

describe('roles', () => {
  test("cannot be raised above the caller's own role, not even for the caller", async () => {
    const admin = await newPerson(service, first, 'admin');
    const other = await newPerson(service, first, 'member');
    const owner = await newPerson(service, first, 'owner');
    expect((await setRole(admin.key, first, admin.uid, 'owner')).status).toBe(403);
    expect((await setRole(admin.key, first, other.uid, 'owner')).status).toBe(403);
    expect((await setRole(admin.key, first, owner.uid, 'member')).status).toBe(403);
    expect((await remove(admin.key, first, owner.uid)).status).toBe(403);
    expect((await setRole(other.key, first, other.uid, 'admin')).status).toBe(403);
    expect((await setRole(admin.key, first, other.uid, 'admin')).status).toBe(200);
    expect((await setRole(owner.key, first, other.uid, 'owner')).status).toBe(200);
  });

  test('take effect at once', async () => {
    const person = await newPerson(service, first, 'member');
    await service.newRun({}, person.key);
    // The clock of this process does not move, so its cache does not expire.
    const elsewhere = await openKeyDirectory(service.deps.db, service.deps.log, () => 0);
    expect((await elsewhere.authenticate(person.key))?.role).toBe('member');
    await setRole(service.key, first, person.uid, 'viewer');
    await expect.poll(async () => (await elsewhere.authenticate(person.key))?.role).toBe('viewer');
    await expect
      .poll(
        async () => (await service.request('POST', '/agent/runs', { key: person.key, body: { prompt: 'a' } })).status,
      )
      .toBe(403);
    elsewhere.close();
  });

  test('keep one owner: if two owners demote each other at once, one owner remains', async () => {
    const team = await newTeam(service);
    const [own] = await members(team);
    const other = await newPerson(service, team, 'owner');
    const statuses = (
      await Promise.all([
        setRole(service.key, team, other.uid, 'member'),
        setRole(other.key, team, own?.user.uid ?? '', 'member'),
      ])
    ).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    const owners = (await members(team)).filter(({ role }) => role === 'owner');
    expect(owners).toHaveLength(1);
    const last = owners[0]?.user.uid ?? '';
    const key = last === other.uid ? other.key : service.key;
    expect((await remove(key, team, last)).status).toBe(409);
    expect((await setRole(key, team, last, 'admin')).status).toBe(409);
  });

  test('do not remove the operator from the team of the operator key', async () => {
    const owner = await newPerson(service, first, 'owner');
    const [operator] = await db.query<{ uid: string }>(
      'SELECT u.uid FROM users u JOIN api_keys k ON k.user_id = u.id WHERE k.is_operator',
    );
    expect((await remove(owner.key, first, operator?.uid ?? '')).status).toBe(409);
  });
});

test('an administrator of another team cannot see the people of the team', async () => {
  const second = await newTeam(service);
  const admin = await newPerson(service, second, 'admin');
  const person = await newPerson(service, first, 'member');
  for (const [method, path] of [
    ['GET', `/teams/${first}/members`],
    ['DELETE', `/teams/${first}/members/${person.uid}`],
    ['DELETE', `/teams/${second}/members/${person.uid}`],
    ['GET', `/teams/${first}/invitations`],
  ] as const)
    await service.problem(404, method, path, { key: admin.key });
  expect(await statusOf(person.key)).toBe(200);
});

describe('the limits of teams', () => {
  test('refuse a person in a full team, and the invitation remains valid', async () => {
    const team = await newTeam(service, 'Full');
    const key = await invite(service, team, 'viewer');
    await db.query(
      `WITH people AS (
         INSERT INTO users (id, uid, display_name)
         SELECT gen_random_uuid(), lpad(i::text, 22, '0'), 'P' FROM generate_series(1, ${maxMembers - 1}) i RETURNING id)
       INSERT INTO team_members (team_id, user_id, role)
       SELECT t.id, p.id, 'viewer' FROM people p, teams t WHERE t.uid = $1`,
      [team],
    );
    const accept = () =>
      service.request('POST', '/team-invitations/accept', { key: null, body: { key, display_name: 'D' } });
    expect((await accept()).status).toBe(409);
    expect((await remove(service.key, team, '1'.padStart(22, '0'))).status).toBe(200);
    expect((await accept()).status).toBe(201);
  });

  test('refuse one more open invitation than allowed', async () => {
    const team = await newTeam(service, 'Inviting');
    await db.query(
      `INSERT INTO team_invitations (id, team_id, hash, role, invited_by, expires_at)
       SELECT gen_random_uuid(), t.id, decode(lpad(to_hex(i), 64, '0'), 'hex'), 'viewer', m.user_id, now() + interval '1 day'
       FROM generate_series(1, ${maxInvitations}) i, teams t JOIN team_members m ON m.team_id = t.id WHERE t.uid = $1`,
      [team],
    );
    await service.problem(409, 'POST', `/teams/${team}/invitations`, { body: { role: 'viewer' } });
  });

  test('refuse another body with the same Idempotency-Key', async () => {
    const headers = { 'Idempotency-Key': 'team-2' };
    expect((await service.request('POST', '/teams', { headers, body: { name: 'A' } })).status).toBe(201);
    await service.problem(409, 'POST', '/teams', { headers, body: { name: 'B' } });
  });
});
