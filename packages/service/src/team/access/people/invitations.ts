/** Stores the invitations of a team. An invitation has a key that is shown only once, and only one person can use it. */
import { randomUUIDv7 } from 'node:crypto';
import { maxInvitations } from '@runyard/contract/limits';
import type {
  CreateTeamInvitationRequest,
  CreateTeamInvitationResponse,
  InvitationOffer,
  TeamInvitation,
} from '@runyard/contract/team/teams';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import { hashKey, newInvitationKey } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { teamHasRoom } from '../teams/has-room.ts';

const invitationRow = {
  id: uuid,
  role: text<Role>(),
  note: nullable(text()),
  uid: text(),
  display_name: text(),
  created_at: timestamp,
  expires_at: timestamp,
};

const readInvitations = defineStatement({
  name: 'read_team_invitations',
  text: `
    SELECT i.id, i.role, i.note, u.uid, u.display_name, i.created_at, i.expires_at
    FROM team_invitations i JOIN users u ON u.id = i.invited_by
    WHERE i.team_id = $1 AND i.expires_at > clock_timestamp() ORDER BY i.created_at, i.id`,
  row: invitationRow,
});

const readInviter = defineStatement({
  name: 'read_role_of_inviter',
  // The statement locks the membership of the inviter, so that the inviter's role cannot change meanwhile: a lower role ends only
  // invitations that already exist.
  text: `
    SELECT m.role FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $1 AND u.uid = $2
    FOR SHARE OF m`,
  row: { role: text<Role>() },
});

const deleteExpired = defineStatement({
  name: 'delete_expired_invitations',
  text: 'DELETE FROM team_invitations WHERE team_id = $1 AND expires_at <= clock_timestamp()',
  row: {},
});

const insertInvitation = defineStatement({
  name: 'insert_team_invitation',
  text: `
    INSERT INTO team_invitations AS i (id, team_id, hash, role, note, invited_by, expires_at)
    SELECT $1, $2, $3, $4, $5, u.id, clock_timestamp() + $7 * interval '1 hour' FROM users u WHERE u.uid = $6
    RETURNING id, role, note, created_at, expires_at`,
  row: { id: uuid, role: text<Role>(), note: nullable(text()), created_at: timestamp, expires_at: timestamp },
});

const readOffer = defineStatement({
  name: 'read_offer_of_invitation',
  text: `
    SELECT t.name AS team_name, i.role, u.display_name AS invited_by, i.expires_at
    FROM team_invitations i JOIN teams t ON t.id = i.team_id JOIN users u ON u.id = i.invited_by
    WHERE i.hash = $1 AND i.expires_at > clock_timestamp()`,
  row: { team_name: text(), role: text<Role>(), invited_by: text(), expires_at: timestamp },
});

const deleteInvitation = defineStatement({
  name: 'delete_team_invitation',
  text: 'DELETE FROM team_invitations WHERE team_id = $1 AND id = $2 RETURNING role, note',
  row: { role: text<Role>(), note: nullable(text()) },
});

const toInvitation = (row: RowOf<typeof readInvitations>): TeamInvitation => ({
  id: row.id,
  role: row.role,
  ...(row.note === null ? {} : { note: row.note }),
  invited_by: { type: 'user', uid: row.uid, display_name: row.display_name },
  created_at: row.created_at,
  expires_at: row.expires_at,
});

/** Returns the invitations of a team that can still be used, oldest first. */
export async function listInvitations(db: Queryable, teamId: string): Promise<TeamInvitation[]> {
  return (await db.query(readInvitations, [teamId])).map(toInvitation);
}

/**
 * Creates an invitation. Only the result contains the key of the invitation. `above_own`: the role in the invitation is higher than the
 * role of the caller.
 */
export async function createInvitation(
  tx: Queryable,
  principal: Principal,
  { role, note, expires_in_hours: hours }: CreateTeamInvitationRequest,
): Promise<CreateTeamInvitationResponse | 'above_own' | 'too_many'> {
  const { teamId, creator } = principal;
  const [inviter] = await tx.query(readInviter, [teamId, creator.uid]);
  if (!inviter || !isAtLeast(inviter.role, 'admin') || !isAtLeast(inviter.role, role)) return 'above_own';
  await tx.query(deleteExpired, [teamId]);
  if (!(await teamHasRoom(tx, principal, 'team_invitations', maxInvitations))) return 'too_many';
  const key = newInvitationKey();
  const [row] = await tx.query(insertInvitation, [
    randomUUIDv7(),
    teamId,
    hashKey(key),
    role,
    note ?? null,
    creator.uid,
    hours,
  ]);
  if (!row) throw new Error('the invitation was not inserted');
  await recordChange(tx, principal, {
    action: 'invitation.create',
    subject: { type: 'invitation', uid: row.id, name: note },
    after: { role, expires_at: row.expires_at },
  });
  return { ...toInvitation({ ...row, uid: creator.uid, display_name: creator.displayName }), key };
}

/** Returns what the invitation with this key offers; null if it was used or withdrawn, has expired, or is unknown. */
export async function readInvitation(db: Queryable, key: string): Promise<InvitationOffer | null> {
  return (await db.query(readOffer, [hashKey(key)]))[0] ?? null;
}

/** Withdraws an invitation. Returns false if the team has no such invitation. */
export async function withdrawInvitation(db: Database, principal: Principal, id: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.query(deleteInvitation, [principal.teamId, id]);
    if (!row) return false;
    await recordChange(tx, principal, {
      action: 'invitation.delete',
      subject: { type: 'invitation', uid: id, name: row.note },
      before: { role: row.role },
      endsAccess: true,
    });
    return true;
  });
}
