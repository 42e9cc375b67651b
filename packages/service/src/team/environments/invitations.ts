/** Invites people of other teams to an environment. A person who accepts the invitation becomes a guest of the environment. */
import { randomUUID } from 'node:crypto';
import type {
  EnvironmentInvitation,
  InviteEnvironmentGuestRequest,
  OwnEnvironmentInvitation,
} from '@runyard/contract/environments/environment-guests';
import { maxEnvironmentGuests } from '@runyard/contract/limits';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import { lockGuests } from './guests.ts';

const row = {
  id: uuid,
  kind: text<'user' | 'email'>(),
  invitee: text(),
  created_at: timestamp,
  expires_at: timestamp,
};
const columns = 'id, kind, invitee, created_at, expires_at';

const readWaiting = defineStatement({
  name: 'read_environment_invitations',
  text: `
    SELECT ${columns} FROM environment_invitations WHERE environment_uid = $1 AND expires_at > now() ORDER BY created_at, id`,
  row,
});

/** The limit applies to the sum of guests and invitations. */
const readRoom = defineStatement({
  name: 'has_room_for_environment_invitation',
  text: `
    SELECT (SELECT count(*) FROM environment_guests WHERE environment_uid = $1)
      + (SELECT count(*) FROM environment_invitations WHERE environment_uid = $1 AND expires_at > now()) < ${maxEnvironmentGuests} AS room`,
  row: { room: boolean },
});

const insert = defineStatement({
  name: 'insert_environment_invitation',
  text: `
    INSERT INTO environment_invitations AS i (id, environment_uid, kind, invitee, invited_by_uid) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (environment_uid, kind, invitee) DO UPDATE SET invited_by_uid = excluded.invited_by_uid, expires_at = excluded.expires_at
    RETURNING ${columns}`,
  row,
});

const withdraw = defineStatement({
  name: 'delete_environment_invitation',
  text: `
    DELETE FROM environment_invitations i USING environments e
    WHERE e.team_id = $1 AND e.uid = $2 AND i.environment_uid = e.uid AND i.id = $3 RETURNING i.invitee`,
  row: { invitee: text() },
});

/**
 * SQL: the invitation `i` is for the person whose uid is $1. The service does not verify mail addresses. So for an invitation by address,
 * the person must also know the id of the invitation. Nobody can guess the id, and only the inviting team can give it to others.
 */
const isForPerson = `
  (i.kind = 'user' AND i.invitee = $1
    OR i.kind = 'email' AND i.invitee = (SELECT lower(u.email) FROM users u WHERE u.uid = $1))`;

/** This statement does not list invitations by address, because a person who joined a team with a false address would learn the id. */
const readOwn = defineStatement({
  name: 'read_environment_invitations_of_person',
  text: `
    SELECT i.id, e.uid AS environment_uid, e.config->>'name' AS environment_name, t.name AS team_name,
      (SELECT u.display_name FROM users u WHERE u.uid = i.invited_by_uid) AS invited_by, i.created_at, i.expires_at
    FROM environment_invitations i JOIN environments e ON e.uid = i.environment_uid JOIN teams t ON t.id = e.team_id
    WHERE i.kind = 'user' AND i.invitee = $1 AND i.expires_at > now() ORDER BY i.created_at DESC, i.id LIMIT 100`,
  row: {
    id: uuid,
    environment_uid: text(),
    environment_name: nullable(text()),
    team_name: text(),
    invited_by: nullable(text()),
    created_at: timestamp,
    expires_at: timestamp,
  },
});

/** The statement deletes the invitation, so that it can be answered only once. An invitation that was withdrawn or answered has no row. */
const useOwn = defineStatement({
  name: 'use_environment_invitation',
  text: `
    WITH used AS (
      DELETE FROM environment_invitations i WHERE i.id = $2 AND i.expires_at > now() AND ${isForPerson} RETURNING i.environment_uid)
    SELECT used.environment_uid, e.team_id, e.config->>'name' AS name FROM used JOIN environments e ON e.uid = used.environment_uid`,
  row: { environment_uid: text(), team_id: uuid, name: nullable(text()) },
});

const insertGuest = defineStatement({
  name: 'insert_environment_guest',
  text: `
    INSERT INTO environment_guests (environment_uid, user_id) SELECT $1, id FROM users WHERE uid = $2
    ON CONFLICT DO NOTHING`,
  row: {},
});

const leave = defineStatement({
  name: 'leave_environment',
  text: `
    WITH gone AS (
      DELETE FROM environment_guests g USING users u WHERE g.environment_uid = $1 AND u.uid = $2 AND g.user_id = u.id
      RETURNING g.environment_uid
    ), visited AS (
      DELETE FROM environment_visitors v USING users u WHERE v.environment_uid = $1 AND u.uid = $2 AND v.user_id = u.id
      RETURNING v.environment_uid)
    SELECT e.team_id FROM environments e
    WHERE e.uid IN (SELECT environment_uid FROM gone UNION ALL SELECT environment_uid FROM visited)`,
  row: { team_id: uuid },
});

const toInvitation = ({ kind, invitee, ...times }: RowOf<typeof readWaiting>): EnvironmentInvitation => ({
  ...times,
  ...(kind === 'user' ? { user_uid: invitee } : { email: invitee }),
});

const inviteeOf = ({ user_uid: userUid, email }: InviteEnvironmentGuestRequest) =>
  userUid === undefined ? { kind: 'email', invitee: (email ?? '').toLowerCase() } : { kind: 'user', invitee: userUid };

/** Returns the invitations of an environment that were not answered yet. The caller has locked the guests. */
export async function listInvitations(tx: Queryable, environmentUid: string): Promise<EnvironmentInvitation[]> {
  return (await tx.query(readWaiting, [environmentUid])).map(toInvitation);
}

/**
 * Invites a person by UID or mail address. The outcome is the same whether the person exists or not, so that the caller does not learn who
 * uses this service. Returns null if the team has no such environment. `too_many`: the environment has its maximum number of guests and
 * invitations.
 */
export async function inviteGuest(
  tx: Queryable,
  by: Author,
  environmentUid: string,
  request: InviteEnvironmentGuestRequest,
): Promise<EnvironmentInvitation | 'too_many' | null> {
  if (!(await lockGuests(tx, by.teamId, environmentUid))) return null;
  const [room] = await tx.query(readRoom, [environmentUid]);
  if (!room?.room) return 'too_many';
  const { kind, invitee } = inviteeOf(request);
  const [made] = await tx.query(insert, [randomUUID(), environmentUid, kind, invitee, by.creator.uid]);
  if (!made) throw new Error('the invitation was not inserted');
  await recordChange(tx, by, {
    action: 'environment_invitation.create',
    subject: { type: 'environment', uid: environmentUid },
    after: { invitation: made.id, [kind]: invitee },
  });
  return toInvitation(made);
}

/** Withdraws an invitation. Returns false if the environment of the team has no invitation with this id. */
export async function withdrawInvitation(
  db: Database,
  by: Author,
  environmentUid: string,
  id: string,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(withdraw, [by.teamId, environmentUid, id]);
    if (!gone) return false;
    await recordChange(tx, by, {
      action: 'environment_invitation.delete',
      subject: { type: 'environment', uid: environmentUid },
      before: { invitation: id, invitee: gone.invitee },
      endsAccess: true,
    });
    return true;
  });
}

/** Returns the invitations that wait for the person's answer, newest first. */
export async function listOwnInvitations(db: Queryable, { creator }: Author): Promise<OwnEnvironmentInvitation[]> {
  const rows = await db.query(readOwn, [creator.uid]);
  return rows.map(({ environment_name, invited_by, ...each }) => ({
    ...each,
    ...(environment_name === null ? {} : { environment_name }),
    ...(invited_by === null ? {} : { invited_by }),
  }));
}

/**
 * Accepts or declines an invitation of the person. The entry is written to the audit log of the team that owns the environment. Returns
 * false if the person has no invitation with this id.
 */
export async function answerInvitation(db: Database, by: Author, id: string, isAccepted: boolean): Promise<boolean> {
  const { uid } = by.creator;
  return await db.transaction(async (tx) => {
    const [used] = await tx.query(useOwn, [uid, id]);
    if (!used) return false;
    const { environment_uid: environmentUid, team_id: teamId, name } = used;
    if (isAccepted) await tx.query(insertGuest, [environmentUid, uid]);
    const subject = { type: 'environment', uid: environmentUid, name };
    await recordChange(
      tx,
      { ...by, teamId },
      isAccepted
        ? { action: 'environment_guest.create', subject, after: { guest: uid, invitation: id } }
        : { action: 'environment_invitation.decline', subject, before: { invitation: id }, endsAccess: true },
    );
    return true;
  });
}

/** Ends the access of the person to an environment of another team. Returns false if the person has no access to it. */
export async function leaveEnvironment(db: Database, by: Author, environmentUid: string): Promise<boolean> {
  const { uid } = by.creator;
  return await db.transaction(async (tx) => {
    const [left] = await tx.query(leave, [environmentUid, uid]);
    if (!left) return false;
    const change = { action: 'environment_guest.delete', before: { guest: uid }, endsAccess: true } as const;
    await recordChange(
      tx,
      { ...by, teamId: left.team_id },
      { ...change, subject: { type: 'environment', uid: environmentUid } },
    );
    return true;
  });
}
