import type { CreateTeamInvitationResponse, InvitationOffer } from '@runyard/contract/team/teams';
import { expect, test } from 'vitest';
import { teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { db } = service.deps;
const team = await teamUidOf(service);

const invite = (body: object, key = service.key) =>
  service.request<CreateTeamInvitationResponse>('POST', `/teams/${team}/invitations`, { key, body });
const read = (key: string) =>
  service.request<InvitationOffer>('POST', '/team-invitations/read', { key: null, body: { key } });
const accept = (key: string, name = 'Ada') =>
  service.request<{ key: string }>('POST', '/team-invitations/accept', {
    key: null,
    body: { key, display_name: name },
  });

test('the offer of an invitation has the team, the role and the end, and reading it does not use the invitation', async () => {
  const { body: made } = await invite({ role: 'viewer', note: 'a secret note', expires_in_hours: 1 });
  const hours = (Date.parse(made.expires_at) - Date.parse(made.created_at)) / 3_600_000;
  expect(hours).toBeCloseTo(1, 2);
  for (let each = 0; each < 2; each++) {
    const answer = await read(made.key);
    expect(answer.body).toEqual({
      team_name: 'Default team',
      role: 'viewer',
      invited_by: expect.any(String),
      expires_at: made.expires_at,
    });
  }
  expect((await accept(made.key)).status).toBe(201);
});

test('a link that was forwarded works for the first person only', async () => {
  const { body: made } = await invite({ role: 'member' });
  const answers = await Promise.all([accept(made.key, 'First'), accept(made.key, 'Second'), accept(made.key, 'Third')]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403]);
  expect((await read(made.key)).status).toBe(403);
});

test('a link works until its end and not after it', async () => {
  const { body: made } = await invite({ role: 'member', expires_in_hours: 720 });
  await db.query(`UPDATE team_invitations SET expires_at = clock_timestamp() WHERE id = $1`, [made.id]);
  expect((await read(made.key)).status).toBe(403);
  expect((await accept(made.key)).status).toBe(403);
  expect((await invite({ role: 'member', expires_in_hours: 721 })).status).toBe(400);
  expect((await invite({ role: 'member', expires_in_hours: 0 })).status).toBe(400);
  const { body: usual } = await invite({ role: 'member' });
  expect((Date.parse(usual.expires_at) - Date.parse(usual.created_at)) / 86_400_000).toBeCloseTo(7, 3);
});

test('nobody invites with a role above their own, and members and viewers invite nobody', async () => {
  const administrator = await service.newKey({ role: 'admin' });
  expect((await invite({ role: 'owner' }, administrator)).status).toBe(403);
  expect((await invite({ role: 'admin' }, administrator)).status).toBe(201);
  for (const role of ['member', 'viewer'] as const)
    expect((await invite({ role: 'viewer' }, await service.newKey({ role }))).status).toBe(403);
  expect((await invite({ role: 'viewer' }, service.otherKey)).status).toBe(404);
});

test('a person who is in a team already joins with the link as the same person', async () => {
  const { body: made } = await invite({ role: 'member' });
  await service.ok('POST', '/team-invitations/join', { key: service.otherKey, body: { key: made.key } });
  expect((await read(made.key)).status).toBe(403);
});
