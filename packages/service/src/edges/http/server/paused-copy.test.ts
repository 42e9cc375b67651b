import { afterEach, beforeEach, expect, test } from 'vitest';
import { invite, newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { deps } = service;
const teamUid = await teamUidOf(service);
const [admin, secondOwner] = [await newPerson(service, teamUid, 'admin'), await newPerson(service, teamUid, 'owner')];
const invitation = await invite(service, teamUid, 'owner');

const setPause = async (since: string | null) => {
  Object.assign(deps.pause, { since });
  await deps.db.query('UPDATE installation SET paused_at = $1', [since]);
};
beforeEach(() => setPause(new Date().toISOString()));
afterEach(() => setPause(null));

test('a paused copy refuses everybody but owners, whose keys of the backup may have been deleted since', async () => {
  for (const [method, path, body] of [
    ['GET', '/agent/runs', undefined],
    ['POST', '/keys', { name: 'k', kind: 'personal' }],
    ['POST', `/teams/${teamUid}/invitations`, { role: 'admin' }],
  ] as const) {
    const refused = await service.request<{ detail: string }>(method, path, { key: admin.key, body });
    expect([refused.status, refused.body.detail]).toEqual([503, expect.stringContaining('bin/runyard resume')]);
    expect((await service.request(method, path, { key: secondOwner.key, body })).status).toBeLessThan(300);
  }
});

test('a paused copy accepts no invitation and opens no shared thing, until it is resumed', async () => {
  const accept = () =>
    service.request('POST', '/team-invitations/accept', {
      key: null,
      body: { key: invitation, display_name: 'A stranger' },
    });
  expect((await accept()).status).toBe(503);
  const shared = () => service.request('GET', '/agent/artifacts/0190aaaa-0000-7000-8000-000000000000', { key: null });
  expect((await shared()).status).toBe(503);
  expect((await service.request('GET', '/agent/runs', { key: 'run-token-of-nobody' })).status).toBe(401);
  await setPause(null);
  expect((await shared()).status).toBe(401);
  expect((await accept()).status).toBe(201);
});
