/** People of a team and their roles. */
import type { RemoveTeamMemberResponse, TeamMember } from '@runyard/contract/team/teams';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { type Author, recordChange, type State } from '../audit/record.ts';
import { endKeysMadeBy } from '../key-management/manage.ts';
import { isSession, keysChannel } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { lockRows } from '../teams/has-room.ts';
import { endPoolsOf } from '../worker-pools/pools.ts';

const select = `
  SELECT u.id, u.uid, u.display_name, u.email, m.role, m.joined_at,
    (SELECT max(k.last_used_at) FROM api_keys k WHERE k.team_id = m.team_id AND k.user_id = m.user_id) AS last_used_at
  FROM team_members m JOIN users u ON u.id = m.user_id`;
const memberRow = {
  id: uuid,
  uid: text(),
  display_name: text(),
  email: nullable(text()),
  role: text<Role>(),
  joined_at: timestamp,
  last_used_at: nullable(timestamp),
};

const readMembers = defineStatement({
  name: 'read_team_members',
  text: `${select} WHERE m.team_id = $1 ORDER BY m.joined_at, u.number`,
  row: memberRow,
});

const readMember = defineStatement({
  name: 'read_team_member',
  text: `${select} WHERE m.team_id = $1 AND u.uid = $2`,
  row: memberRow,
});

const readOtherOwner = defineStatement({
  name: 'read_whether_team_has_another_owner',
  text: `SELECT EXISTS (SELECT FROM team_members WHERE team_id = $1 AND role = 'owner' AND user_id <> $2) AS found`,
  row: { found: boolean },
});

const readHoldsOperatorKey = defineStatement({
  name: 'read_whether_member_holds_operator_key',
  text: 'SELECT EXISTS (SELECT FROM api_keys WHERE team_id = $1 AND user_id = $2 AND is_operator) AS found',
  row: { found: boolean },
});

const setRole = defineStatement({
  name: 'set_role_of_team_member',
  text: `
    WITH changed AS (UPDATE team_members SET role = $3 WHERE team_id = $1 AND user_id = $2 RETURNING 1)
    SELECT pg_notify('${keysChannel}', '') FROM changed`,
  row: {},
});

const deleteInvitationsOf = defineStatement({
  name: 'delete_invitations_of_member',
  text: 'DELETE FROM team_invitations WHERE team_id = $1 AND invited_by = $2',
  row: {},
});

const removeRow = defineStatement({
  name: 'delete_team_member',
  text: 'DELETE FROM team_members WHERE team_id = $1 AND user_id = $2',
  row: {},
});

/**
 * This statement runs after the delete of the membership, so that it sees keys that were created before the delete got its lock. The
 * person's keys of other teams cannot act in this team any more, so all processes drop their cached keys. $3: the keys without sessions are
 * kept, so that the end can be taken back. Otherwise keys that an earlier end has kept are deleted too.
 */
const removeKeys = defineStatement({
  name: 'delete_keys_of_team_member',
  text: `
    WITH ended AS (DELETE FROM api_keys WHERE team_id = $1 AND user_id = $2 RETURNING *),
    kept AS (
      INSERT INTO ended_members (team_id, user_id, keys)
      SELECT $1, $2, coalesce(jsonb_agg(to_jsonb(k)) FILTER (WHERE NOT ${isSession('k')}), '[]') FROM ended k HAVING $3::boolean
      ON CONFLICT (team_id, user_id) DO UPDATE SET ended_at = now(), keys = excluded.keys),
    forgotten AS (DELETE FROM ended_members WHERE team_id = $1 AND user_id = $2 AND NOT $3)
    SELECT count(*)::integer AS keys, pg_notify('${keysChannel}', '')::text AS notified FROM ended`,
  row: {},
});

/** Days for which the end of a membership can be taken back. */
export const takeBackDays = 30;

/** Columns of a key that is not a session. A column that a later version adds gets its default value. */
const keptColumns =
  'id, hash, kind, name, team_id, user_id, agent_uid, created_by_uid, is_operator, prefix, last_four, created_at, expires_at, last_used_at';

const restoreKeys = defineStatement({
  name: 'restore_keys_of_team_member',
  text: `
    WITH back AS (
      DELETE FROM ended_members WHERE team_id = $1 AND user_id = $2 RETURNING keys, ended_at),
    restored AS (
      INSERT INTO api_keys (${keptColumns})
      SELECT ${keptColumns} FROM (
        SELECT key.* FROM back, jsonb_array_elements(back.keys) kept, jsonb_populate_record(NULL::api_keys, kept) key) keys, back
      WHERE back.ended_at > now() - interval '${takeBackDays} days' ON CONFLICT DO NOTHING RETURNING 1)
    SELECT (SELECT count(*) FROM restored)::integer AS keys, pg_notify('${keysChannel}', '')::text AS notified`,
  row: { keys: integer, notified: text() },
});

/** Brings back the keys that a person had in a team before the membership ended, if this was less than 30 days ago. Returns their number. */
export async function takeBackEnd(tx: Queryable, teamId: string, userId: string): Promise<number> {
  const [restored] = await tx.query(restoreKeys, [teamId, userId]);
  return restored?.keys ?? 0;
}

type MemberRow = RowOf<typeof readMember>;

const toMember = (row: MemberRow): TeamMember => ({
  user: { type: 'user', uid: row.uid, display_name: row.display_name, ...(row.email ? { email: row.email } : {}) },
  role: row.role,
  joined_at: row.joined_at,
  ...(row.last_used_at ? { last_used_at: row.last_used_at } : {}),
});

/** Returns the people of a team, sorted by the time at which they joined. */
export async function listMembers(db: Queryable, teamId: string): Promise<TeamMember[]> {
  return (await db.query(readMembers, [teamId])).map(toMember);
}

/** Reasons why a person is not changed: `not_found` 404; `above_own` 403; `last_owner` and `operator` 409. */
export type MemberRefusal = 'not_found' | 'above_own' | 'last_owner' | 'operator';

/** Locks the people of the team and returns one of them; null if the team has no such person. */
export async function lockMember(tx: Queryable, teamId: string, userUid: string): Promise<MemberRow | null> {
  await lockRows(tx, teamId, 'team_members');
  const [member] = await tx.query(readMember, [teamId, userUid]);
  return member ?? null;
}

/**
 * Locks the people of the team and returns the person to change, if the caller may change this person. Reads the caller's role again,
 * because it may have become lower since the key was read.
 */
async function lockMemberFor(
  tx: Queryable,
  principal: Principal,
  userUid: string,
): Promise<MemberRow | 'not_found' | 'above_own'> {
  const { teamId, creator } = principal;
  const member = await lockMember(tx, teamId, userUid);
  const [own] = await tx.query(readMember, [teamId, creator.uid]);
  if (!own || !member) return 'not_found';
  return isAtLeast(own.role, 'admin') && isAtLeast(own.role, member.role) ? member : 'above_own';
}

/** Returns whether this person is the only owner of the team. */
async function isLastOwner(tx: Queryable, teamId: string, { id, role }: MemberRow): Promise<boolean> {
  if (role !== 'owner') return false;
  const [other] = await tx.query(readOtherOwner, [teamId, id]);
  return !other?.found;
}

/**
 * Changes the role of a person. The caller cannot give a role above their own, or change a person whose role is above their own.
 */
export async function changeRole(
  db: Database,
  principal: Principal,
  userUid: string,
  role: Role,
): Promise<TeamMember | MemberRefusal> {
  const { teamId } = principal;
  return await db.transaction(async (tx) => {
    const member = await lockMemberFor(tx, principal, userUid);
    if (typeof member === 'string') return member;
    const [own] = await tx.query(readMember, [teamId, principal.creator.uid]);
    if (!own || !isAtLeast(own.role, role)) return 'above_own';
    if (role !== 'owner' && (await isLastOwner(tx, teamId, member))) return 'last_owner';
    if (role === member.role) return toMember(member);
    await giveRole(tx, principal, member, role, {});
    return toMember({ ...member, role });
  });
}

/** Changes the role of a person. If the new role is lower, also ends the invitations that the person made. `why` is for the audit log. */
export async function giveRole(tx: Queryable, by: Author, member: MemberRow, role: Role, why: State): Promise<void> {
  const isLower = isAtLeast(member.role, role);
  await tx.query(setRole, [by.teamId, member.id, role]);
  if (isLower) await tx.query(deleteInvitationsOf, [by.teamId, member.id]);
  await recordChange(tx, by, {
    action: 'member.update',
    subject: { type: 'member', uid: member.uid, name: member.display_name },
    before: { role: member.role },
    after: { role, ...why },
    ...(isLower ? { endsAccess: true } : {}),
  });
}

/**
 * Ends the membership of a person, with the keys, sessions and invitations of the person in the team. `why` is for the audit log.
 * `canBeTakenBack`: `takeBackEnd` can bring the keys back.
 */
export async function endMembership(
  tx: Queryable,
  by: Author,
  member: MemberRow,
  why: State,
  { canBeTakenBack } = { canBeTakenBack: false },
): Promise<void> {
  await tx.query(removeRow, [by.teamId, member.id]);
  await tx.query(removeKeys, [by.teamId, member.id, canBeTakenBack]);
  await tx.query(deleteInvitationsOf, [by.teamId, member.id]);
  await recordChange(tx, by, {
    action: 'member.delete',
    subject: { type: 'member', uid: member.uid, name: member.display_name },
    before: { role: member.role, ...why },
    endsAccess: true,
  });
}

/**
 * Removes a person from the team, with the person's keys, sessions and invitations in the team. Returns the agent keys and the worker pools
 * that the person made. `ended`: true if these keys and pools are deleted too.
 */
export async function removeMember(
  db: Database,
  principal: Principal,
  userUid: string,
  ended: { readonly agentKeys: boolean; readonly workerPools: boolean },
): Promise<RemoveTeamMemberResponse | MemberRefusal> {
  const { teamId } = principal;
  return await db.transaction(async (tx) => {
    const member = await lockMemberFor(tx, principal, userUid);
    if (typeof member === 'string') return member;
    if (await isLastOwner(tx, teamId, member)) return 'last_owner';
    const [operator] = await tx.query(readHoldsOperatorKey, [teamId, member.id]);
    if (operator?.found) return 'operator';
    await endMembership(tx, principal, member, {});
    const agentKeys = await endKeysMadeBy(tx, principal, member.uid, ended.agentKeys);
    const workerPools = await endPoolsOf(tx, principal, member.uid, ended.workerPools);
    return { success: true, agent_keys: agentKeys, worker_pools: workerPools };
  });
}

const readOne = defineStatement({
  name: 'read_person_of_team',
  text: `
    SELECT u.uid, u.display_name, u.email, m.role FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND u.uid = $2`,
  row: { uid: text(), display_name: text(), email: nullable(text()), role: text<Role>() },
});

/**
 * Returns a person with the present role. This is for an action of the service in the name of the person, without a request. Returns null
 * if the person has left the team.
 */
export async function readAuthor(
  db: Queryable,
  teamId: string,
  userUid: string,
): Promise<(Author & { readonly role: Role }) | null> {
  const [found] = await db.query(readOne, [teamId, userUid]);
  if (!found) return null;
  const { uid, display_name: displayName, email, role } = found;
  const creator = { kind: 'user', uid, displayName, ...(email === null ? {} : { email }) } as const;
  return { teamId, creator, from: null, keyId: null, role };
}
