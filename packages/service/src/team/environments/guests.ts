import type { EnvironmentGuest } from '@runyard/contract/environments/environment-guests';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';

const row = { user_uid: text(), display_name: text(), granted_at: timestamp };

const readGuests = defineStatement({
  name: 'read_environment_guests',
  text: `
    SELECT u.uid AS user_uid, u.display_name, g.granted_at FROM environment_guests g JOIN users u ON u.id = g.user_id
    WHERE g.environment_uid = $1 ORDER BY g.granted_at, u.uid`,
  row,
});

/** Because of this lock, changes of the guests of an environment happen one after another. */
const lockEnvironment = defineStatement({
  name: 'lock_environment',
  text: 'SELECT uid FROM environments WHERE team_id = $1 AND uid = $2 FOR UPDATE',
  row: { uid: text() },
});

const remove = defineStatement({
  name: 'remove_environment_guest',
  text: `
    DELETE FROM environment_guests g USING environments e, users u
    WHERE e.team_id = $1 AND e.uid = $2 AND g.environment_uid = e.uid AND u.uid = $3 AND g.user_id = u.id
    RETURNING e.uid`,
  row: { uid: text() },
});

/** Locks the guests of an environment until the transaction ends. Returns false if the team has no such environment. */
export async function lockGuests(tx: Queryable, teamId: string, uid: string): Promise<boolean> {
  return (await tx.query(lockEnvironment, [teamId, uid])).length > 0;
}

/**
 * Returns the guests of an environment, without their mail addresses. The list begins with the guest who accepted first. The caller has
 * locked the guests.
 */
export async function readGuestsOf(tx: Queryable, uid: string): Promise<EnvironmentGuest[]> {
  return (await tx.query(readGuests, [uid])).map(({ user_uid, display_name, granted_at }) => ({
    user: { type: 'user', uid: user_uid, display_name },
    granted_at,
  }));
}

/** Removes a guest. Returns false if the team has no such environment, or the person is not a guest of it. */
export async function removeGuest(tx: Queryable, by: Author, uid: string, userUid: string): Promise<boolean> {
  if ((await tx.query(remove, [by.teamId, uid, userUid])).length === 0) return false;
  const change = { action: 'environment_guest.delete', before: { guest: userUid }, endsAccess: true } as const;
  await recordChange(tx, by, { ...change, subject: { type: 'environment', uid } });
  return true;
}
