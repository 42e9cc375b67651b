import {
  ListEnvironmentGuestsResponse,
  ListOwnEnvironmentInvitationsResponse,
} from '@runyard/contract/environments/environment-guests';
import { Environment, EnvironmentSharing, ListEnvironmentsResponse } from '@runyard/contract/environments/environments';
import { maxEnvironmentGuests, maxEnvironmentVisitors } from '@runyard/contract/limits';
import { expect, test } from 'vitest';
import { admitGuest } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const guestKey = service.otherKey;
const [guest] = await db.query<{ uid: string }>(
  'SELECT u.uid FROM users u JOIN team_members m ON m.user_id = u.id WHERE m.team_id = $1',
  [service.otherTeamId],
);
const guestUid = guest?.uid ?? '';

const create = async (config: object = {}) => {
  const body = { config: { name: 'Shared', ...config } };
  const { uid } = await service.ok<{ uid: string }>('POST', '/agent/environments', { body });
  return { uid, path: `/agent/environments/${uid}` };
};
const guestPerson = { uid: guestUid, key: guestKey };
const admit = (uid: string) => admitGuest(service, uid, guestPerson);
const invite = (path: string, body: object, key = service.key) =>
  service.request<{ id: string }>('POST', `${path}/guest-invitations`, { key, body });
const own = async (key: string) =>
  ListOwnEnvironmentInvitationsResponse.parse(await service.ok('GET', '/environment-invitations', { key })).invitations;
const listed = async (key: string, query = '') => {
  const body = await service.ok('GET', `/agent/environments${query}`, { key });
  return ListEnvironmentsResponse.parse(body).environments;
};
const resolve = (key: string) => service.request('POST', '/harness-support/resolve-prompt', { key, body: {} });

test('a guest lists and reads the environment, and changes nothing', async () => {
  const { uid, path } = await create();
  await service.problem(404, 'GET', path, { key: guestKey });
  await admit(uid);
  await admit(uid);
  const ours = Environment.parse(await service.ok('GET', path));
  expect(await service.ok('GET', path, { key: guestKey })).toEqual(ours);
  for (const query of ['', '?sort_by=name'])
    expect((await listed(guestKey, query)).map((each) => each.uid)).toContain(uid);
  const { guests } = ListEnvironmentGuestsResponse.parse(await service.ok('GET', `${path}/guests`));
  expect(guests).toEqual([
    { user: { type: 'user', uid: guestUid, display_name: 'A person' }, granted_at: expect.any(String) },
  ]);
  await service.problem(404, 'PUT', path, { key: guestKey, body: { config: { name: 'Mine' } } });
  await service.problem(404, 'DELETE', path, { key: guestKey });
  await service.problem(404, 'GET', `${path}/guests`, { key: guestKey });
  await service.problem(404, 'DELETE', `${path}/guests/${guestUid}`, { key: guestKey });
});

test('only the invited person is a guest, not others of the team and not an agent key', async () => {
  const { uid, path } = await create();
  await admit(uid);
  const teamId = service.otherTeamId;
  for (const key of [await service.newKey({ teamId }), await service.newKey({ teamId, kind: 'agent' })]) {
    await service.problem(404, 'GET', path, { key });
    await service.problem(403, 'POST', '/agent/runs', { key, body: { prompt: 'a', config: { environment_id: uid } } });
  }
});

test("a run of a guest is set up with the environment, and owner and guest cannot see each other's runs", async () => {
  const { uid, path } = await create({ setup_commands: ['make'] });
  await admit(uid);
  const ofOwner = await service.newRun({ title: 'Of the owner', config: { environment_id: uid } });
  expect((await listed(guestKey)).find((each) => each.uid === uid)).not.toHaveProperty('last_task_created');
  const ofGuest = await service.newRun({ title: 'Of the guest', config: { environment_id: uid } }, guestKey);
  const { runToken } = await service.claimRun(ofGuest);
  expect((await resolve(runToken)).body).toMatchObject({ environment: { uid, config: { setup_commands: ['make'] } } });
  const latest = async (key: string) => Environment.parse(await service.ok('GET', path, { key })).last_task_created?.id;
  expect(await latest(guestKey)).toBe(ofGuest);
  expect(await latest(service.key)).toBe(ofOwner);
});

test('a removed guest starts no run, and a waiting run fails with the reason', async () => {
  const { uid, path } = await create();
  await admit(uid);
  const runId = await service.newRun({ config: { environment_id: uid } }, guestKey);
  const { runToken } = await service.claimRun(runId);
  expect(await service.ok('DELETE', `${path}/guests/${guestUid}`)).toEqual({ success: true });
  await service.problem(404, 'DELETE', `${path}/guests/${guestUid}`);
  await service.problem(403, 'POST', '/agent/runs', {
    key: guestKey,
    body: { prompt: 'a', config: { environment_id: uid } },
  });
  await service.problem(404, 'GET', path, { key: guestKey });
  expect((await resolve(runToken)).status).toBe(401);
  expect(await service.ok('GET', `/agent/runs/${runId}`, { key: guestKey })).toMatchObject({
    state: 'FAILED',
    status_message: { error_code: 'resource_not_found' },
  });
});

test('an invited person has no rights before accepting the invitation, and the invitation shows only a name', async () => {
  await db.query("UPDATE users SET email = 'Guest@Example.com', display_name = 'A guest' WHERE uid = $1", [guestUid]);
  for (const body of [{ user_uid: guestUid }, { email: 'guest@example.com' }]) {
    const { uid, path } = await create({ setup_commands: ['make'] });
    const invited = await invite(path, body);
    expect(invited.status, invited.text).toBe(201);
    await service.problem(404, 'GET', path, { key: guestKey });
    await service.problem(403, 'POST', '/agent/runs', {
      key: guestKey,
      body: { prompt: 'a', config: { environment_id: uid } },
    });
    const before = await service.request('GET', `${path}/guests`);
    expect(before.text).not.toContain('A guest');
    expect(ListEnvironmentGuestsResponse.parse(before.body)).toMatchObject({ guests: [], invitations: [body] });
    // The service does not verify e-mail addresses, so any person could have this address in the profile.
    expect(await own(guestKey)).toMatchObject(
      'email' in body ? [] : [{ id: invited.body.id, environment_uid: uid, invited_by: 'Administrator' }],
    );
    const others = await service.newKey({ teamId: service.otherTeamId });
    expect(await own(others), 'another person').toEqual([]);
    await service.problem(404, 'POST', `/environment-invitations/${invited.body.id}/accept`, { key: others });
    expect(
      (await service.request('POST', `/environment-invitations/${invited.body.id}/accept`, { key: guestKey })).status,
    ).toBe(200);
    await service.problem(404, 'POST', `/environment-invitations/${invited.body.id}/accept`, { key: guestKey });
    expect((await service.request('GET', path, { key: guestKey })).status).toBe(200);
    const after = await service.request('GET', `${path}/guests`);
    expect(after.text.toLowerCase()).not.toContain('guest@example.com');
    expect(ListEnvironmentGuestsResponse.parse(after.body)).toMatchObject({
      guests: [{ user: { type: 'user', uid: guestUid, display_name: 'A guest' } }],
      invitations: [],
    });
    expect((await service.request('DELETE', `/guest-environments/${uid}`, { key: guestKey })).status).toBe(200);
    await service.problem(404, 'DELETE', `/guest-environments/${uid}`, { key: guestKey });
    await service.problem(404, 'GET', path, { key: guestKey });
  }
});

test('the answer to an invitation does not reveal whether a person with the invited uid or e-mail address exists', async () => {
  const { path } = await create();
  const shapes = [];
  for (const body of [
    { user_uid: guestUid },
    { user_uid: 'A'.repeat(22) },
    { email: 'nobody@example.com' },
    { email: 'guest@example.com' },
  ]) {
    const { status, body: made } = await invite(path, body);
    shapes.push([status, Object.keys(made).filter((name) => !(name in body))]);
  }
  expect(shapes).toEqual(Array.from({ length: 4 }, () => [201, ['id', 'created_at', 'expires_at']]));
});

test('an invitation that was declined, withdrawn or has expired cannot be used', async () => {
  const { path } = await create();
  const make = async () => (await invite(path, { user_uid: guestUid })).body.id;
  const accept = (id: string) =>
    service.problem(404, 'POST', `/environment-invitations/${id}/accept`, { key: guestKey });
  const declined = await make();
  expect(
    (await service.request('POST', `/environment-invitations/${declined}/decline`, { key: guestKey })).status,
  ).toBe(200);
  await accept(declined);
  const withdrawn = await make();
  expect((await service.request('DELETE', `${path}/guest-invitations/${withdrawn}`)).status).toBe(200);
  await service.problem(404, 'DELETE', `${path}/guest-invitations/${withdrawn}`);
  await accept(withdrawn);
  const old = await make();
  await db.query('UPDATE environment_invitations SET expires_at = now() WHERE id = $1', [old]);
  await accept(old);
  expect((await own(guestKey)).map(({ id }) => id)).not.toContain(old);
});

test('a team cannot invite people to the environment of another team, or more people than the limit', async () => {
  const { uid, path } = await create();
  await service.problem(404, 'POST', `${path}/guest-invitations`, { key: guestKey, body: { user_uid: guestUid } });
  const member = await service.newKey({ role: 'member' });
  await service.problem(403, 'POST', `${path}/guest-invitations`, { key: member, body: { user_uid: guestUid } });
  for (const body of [{}, { user_uid: 'x' }, { user_uid: guestUid, email: 'a@example.com' }])
    await service.problem(400, 'POST', `${path}/guest-invitations`, { body });
  await db.query(
    `WITH people AS (INSERT INTO users (id, uid, display_name)
       SELECT gen_random_uuid(), lpad(n::text, 22, 'G'), 'P' FROM generate_series(1, $2::int) n RETURNING id)
     INSERT INTO environment_guests (environment_uid, user_id) SELECT $1, id FROM people`,
    [uid, maxEnvironmentGuests],
  );
  await service.problem(409, 'POST', `${path}/guest-invitations`, { body: { user_uid: guestUid } });
});

test('people who have the uid of an environment that is shared by link can open the environment, and then find it in their list', async () => {
  const { uid, path } = await create({ setup_commands: ['make'] });
  const shared = [await service.request('POST', `${path}/share`), await service.request('POST', `${path}/share`)];
  expect(shared[0]?.body).toEqual(shared[1]?.body);
  const { url, ...rest } = EnvironmentSharing.parse(shared[0]?.body);
  expect(rest).toEqual({ uid, is_link_shared: true });
  expect(new URL(url ?? '').pathname).toBe(`/api/v1${path}`);

  const isListed = async () => (await listed(guestKey)).some((each) => each.uid === uid);
  expect(await isListed()).toBe(false);
  const agentKey = await service.newKey({ teamId: service.otherTeamId, kind: 'agent' });
  await service.problem(404, 'GET', path, { key: agentKey });
  const runId = await service.newRun({ config: { environment_id: uid } }, guestKey);
  expect(await isListed()).toBe(true);
  expect(await service.ok('GET', path, { key: guestKey })).toMatchObject({ is_link_shared: true });
  await service.problem(404, 'PUT', path, { key: guestKey, body: { config: { name: 'Mine' } } });
  const { runToken } = await service.claimRun(runId);
  expect((await resolve(runToken)).body).toMatchObject({ environment: { uid, config: { setup_commands: ['make'] } } });

  const reader = await service.newKey({ teamId: service.otherTeamId });
  expect((await service.request('GET', path, { key: reader })).status).toBe(200);

  expect(await service.ok('DELETE', `${path}/share`)).toEqual({ uid, is_link_shared: false });
  for (const key of [guestKey, reader]) await service.problem(404, 'GET', path, { key });
  expect(await isListed()).toBe(false);
  expect(await service.ok('GET', path)).not.toHaveProperty('is_link_shared');
});

test('guests remain after sharing by link ends, and only administrators of the team can share an environment', async () => {
  const { uid, path } = await create();
  const member = await service.newKey({ role: 'member' });
  for (const method of ['POST', 'DELETE'] as const) {
    await service.problem(403, method, `${path}/share`, { key: member });
    await service.problem(404, method, `${path}/share`, { key: guestKey });
    await service.problem(404, method, '/agent/environments/x/share');
  }
  await admit(uid);
  await service.request('POST', `${path}/share`);
  await service.request('DELETE', `${path}/share`);
  expect((await service.request('GET', path, { key: guestKey })).status).toBe(200);
});

test('a link admits no more people than the limit', async () => {
  const { uid, path } = await create();
  await service.request('POST', `${path}/share`);
  await db.query(
    `WITH people AS (INSERT INTO users (id, uid, display_name)
       SELECT gen_random_uuid(), lpad(n::text, 22, 'V'), 'P' FROM generate_series(1, $2::int) n RETURNING id)
     INSERT INTO environment_visitors (environment_uid, user_id) SELECT $1, id FROM people`,
    [uid, maxEnvironmentVisitors],
  );
  await service.problem(404, 'GET', path, { key: guestKey });
});
