import type { EnvironmentGuest } from '@runyard/contract/environment-guests';
import { maxEnvironmentGuests } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import { readProfiles } from '../access/profiles.ts';

const row = { user_uid: text(), granted_at: timestamp };

const readGuests = defineStatement({
  name: 'read_environment_guests',
  text: `
    SELECT u.uid AS user_uid, g.granted_at FROM environment_guests g JOIN users u ON u.id = g.user_id
    WHERE g.environment_uid = $1 ORDER BY g.granted_at, u.uid`,
  row,
});

/** The lock orders the changes of the guests of one environment. */
const lockEnvironment = defineStatement({
  name: 'lock_environment',
  text: 'SELECT uid FROM environments WHERE team_id = $1 AND uid = $2 FOR UPDATE',
  row: { uid: text() },
});

const hasRoom = defineStatement({
  name: 'has_room_for_environment_guest',
  text: `
    SELECT count(*) < $3 OR coalesce(bool_or(u.uid = $2), false) AS room
    FROM environment_guests g JOIN users u ON u.id = g.user_id WHERE g.environment_uid = $1`,
  row: { room: boolean },
});

const admit = defineStatement({
  name: 'admit_environment_guest',
  text: `
    WITH person AS (SELECT id, uid FROM users WHERE uid = $2)
    INSERT INTO environment_guests AS g (environment_uid, user_id) SELECT $1, id FROM person
    ON CONFLICT (environment_uid, user_id) DO UPDATE SET granted_at = g.granted_at
    RETURNING (SELECT uid FROM person) AS user_uid, granted_at, xmax = 0 AS is_new`,
  row: { ...row, is_new: boolean },
});

const remove = defineStatement({
  name: 'remove_environment_guest',
  text: `
    DELETE FROM environment_guests g USING environments e, users u
    WHERE e.team_id = $1 AND e.uid = $2 AND g.environment_uid = e.uid AND u.uid = $3 AND g.user_id = u.id
    RETURNING e.uid`,
  row: { uid: text() },
});

async function toGuests(
  db: Queryable,
  teamId: string,
  rows: readonly { user_uid: string; granted_at: string }[],
): Promise<EnvironmentGuest[]> {
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.map(({ user_uid: uid }) => ({ kind: 'user', uid })),
  );
  return rows.map(({ user_uid: uid, granted_at }) => ({ user: profileOf({ kind: 'user', uid }), granted_at }));
}

/** Returns the guests of an environment, first admitted first. Null: the team has no such environment. */
export async function listGuests(db: Database, teamId: string, uid: string): Promise<EnvironmentGuest[] | null> {
  return await db.transaction(async (tx) => {
    if ((await tx.query(lockEnvironment, [teamId, uid])).length === 0) return null;
    return await toGuests(tx, teamId, await tx.query(readGuests, [uid]));
  });
}

/** Admits a person. Null: the team has no such environment, or there is no such person. `too_many`: the environment has the largest number of guests. */
export async function admitGuest(
  db: Database,
  by: Author,
  uid: string,
  userUid: string,
): Promise<EnvironmentGuest | 'too_many' | null> {
  const { teamId } = by;
  return await db.transaction(async (tx) => {
    if ((await tx.query(lockEnvironment, [teamId, uid])).length === 0) return null;
    const [room] = await tx.query(hasRoom, [uid, userUid, maxEnvironmentGuests]);
    if (!room?.room) return 'too_many';
    const admitted = await tx.query(admit, [uid, userUid]);
    const [guest] = await toGuests(tx, teamId, admitted);
    if (!guest) return null;
    if (!admitted[0]?.is_new) return guest;
    const subject = { type: 'environment', uid };
    await recordChange(tx, by, { action: 'environment_guest.create', subject, after: { guest: userUid } });
    return guest;
  });
}

/** Removes a guest. False: the team has no such environment, or the person is no guest of it. */
export async function removeGuest(tx: Queryable, by: Author, uid: string, userUid: string): Promise<boolean> {
  if ((await tx.query(remove, [by.teamId, uid, userUid])).length === 0) return false;
  const change = { action: 'environment_guest.delete', before: { guest: userUid }, endsAccess: true } as const;
  await recordChange(tx, by, { ...change, subject: { type: 'environment', uid } });
  return true;
}
