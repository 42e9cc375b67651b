import { randomUUID } from 'node:crypto';
import { reserveForOwners, shareOfRole } from '@runyard/contract/limits';
import { afterEach, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { ShareTaken, teamHasRoom } from './has-room.ts';

const service = await openTestService();
const { db } = service.deps;
const teamUid = await teamUidOf(service);
const { teamId } = service;
const most = 40;

/** Adds rows to `mcp_servers` that a caller created. */
const add = (creatorUid: string | null, count: number) =>
  db.query(
    `INSERT INTO mcp_servers (id, team_id, name, command, vault_key_id, sealed_values, creator_uid)
     SELECT gen_random_uuid(), $1, $2 || n, 'm', '', '', $3 FROM generate_series(1, $4::int) n`,
    [teamId, randomUUID(), creatorUid, count],
  );
afterEach(() => db.query('DELETE FROM mcp_servers'));

const room = (creator: Parameters<typeof teamHasRoom>[1]['creator']) =>
  db.transaction((tx) => teamHasRoom(tx, { teamId, creator }, 'mcp_servers', most));

test.each(['admin', 'member', 'viewer'] as const)(
  'one %s cannot create more than the share of the role',
  async (role) => {
    const { uid } = await newPerson(service, teamUid, role);
    await add(uid, Math.ceil(most * shareOfRole[role]) - 1);
    expect(await room({ kind: 'user', uid })).toBe(true);
    await add(uid, 1);
    await expect(room({ kind: 'user', uid })).rejects.toThrow(ShareTaken);
    const other = await newPerson(service, teamUid, role);
    expect(await room({ kind: 'user', uid: other.uid })).toBe(true);
  },
);

test('the last part of a limit is for owners, and agent keys have the share of a member', async () => {
  const [member, owner] = [await newPerson(service, teamUid, 'member'), await newPerson(service, teamUid, 'owner')];
  const agent = { kind: 'service_account', uid: randomUUID() } as const;
  await add(agent.uid, most * shareOfRole.member);
  await expect(room(agent)).rejects.toThrow('You have made 10 of the team');
  await add(null, most * (1 - reserveForOwners - shareOfRole.member));
  await expect(room({ kind: 'user', uid: member.uid })).rejects.toThrow('the last 10 % are for owners');
  expect(await room({ kind: 'user', uid: owner.uid })).toBe(true);
  await add(owner.uid, most * reserveForOwners);
  expect(await room({ kind: 'user', uid: owner.uid })).toBe(false);
});

test('a viewer who makes keys in a loop stops early with 409, and an owner can still make one', async () => {
  const viewer = await newPerson(service, teamUid, 'viewer');
  const make = (key?: string) =>
    service.request<{ detail: string }>('POST', '/keys', {
      ...(key === undefined ? {} : { key }),
      body: { name: 'k', kind: 'personal' },
    });
  await db.query(
    `INSERT INTO api_keys (id, hash, kind, name, team_id, user_id, prefix, last_four)
     SELECT gen_random_uuid(), sha256(n::text::bytea), 'personal', 'k', $1, (SELECT id FROM users WHERE uid = $2), '', ''
     FROM generate_series(1, 49) n`,
    [teamId, viewer.uid],
  );
  const refused = await make(viewer.key);
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    expect.stringContaining('as one caller with your role may'),
  ]);
  expect((await make()).status).toBe(201);
});
