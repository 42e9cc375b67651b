/** Accepts invitations. A new person gets a first key. A person who already has a key joins the team with this key. */
import { randomUUIDv7 } from 'node:crypto';
import { maxMembers } from '@runyard/contract/limits';
import type { AcceptTeamInvitationRequest, AcceptTeamInvitationResponse, Team } from '@runyard/contract/team/teams';
import type { Role } from '@runyard/contract/wire/access';
import { readPausedSince } from '../../../platform/installation/installation.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
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
import { insertPersonalKey } from '../key-management/manage.ts';
import { hashKey, keysChannel } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { teamHasRoomForMember } from '../teams/has-room.ts';
import { newUid } from '../teams/uid.ts';
import { mayJoinAnother, toTeam } from './own-teams.ts';

/** The statement deletes the invitation, so that only one person can use it. */
const useInvitation = defineStatement({
  name: 'use_team_invitation',
  text: `
    WITH used AS (
      DELETE FROM team_invitations WHERE hash = $1 AND expires_at > clock_timestamp() RETURNING id, team_id, role, note)
    SELECT used.id AS invitation_id, used.note, t.id, t.uid, t.name, used.role, t.created_at
    FROM used JOIN teams t ON t.id = used.team_id`,
  row: {
    invitation_id: uuid,
    note: nullable(text()),
    id: uuid,
    uid: text(),
    name: text(),
    role: text<Role>(),
    created_at: timestamp,
  },
});

/** Creates a person. Parameters: id, UID, name and address. */
export const insertUser = defineStatement({
  name: 'insert_user',
  text: 'INSERT INTO users (id, uid, display_name, email) VALUES ($1, $2, $3, $4)',
  row: {},
});

/** Adds the person with a UID to a team; returns no row if the person is already in the team. */
export const insertMember = defineStatement({
  name: 'insert_team_member',
  text: `
    WITH joined AS (
      INSERT INTO team_members (team_id, user_id, role) SELECT $1, u.id, $3 FROM users u WHERE u.uid = $2
      ON CONFLICT DO NOTHING RETURNING user_id)
    SELECT user_id, pg_notify('${keysChannel}', '') FROM joined`,
  row: { user_id: uuid },
});

/**
 * Reasons why an invitation is not accepted: `unknown` is answered with 403, `paused` with 503, the other reasons with 409. The invitation
 * can still be used.
 */
export type AcceptRefusal =
  | 'unknown'
  | 'paused'
  | 'already_in_team'
  | 'too_many_members'
  | 'too_many_teams'
  | 'managed_by_rules';

/** Returns whether rules manage the team with this UID. */
export type IsManagedByRules = (teamUid: string) => boolean;

/** Is thrown to roll back the use of an invitation. */
export class NotAccepted extends Error {
  readonly reason: AcceptRefusal;
  constructor(reason: AcceptRefusal) {
    super(reason);
    this.reason = reason;
  }
}

type UsedInvitation = RowOf<typeof useInvitation>;
type Person = { readonly uid: string; readonly displayName: string };

/** Adds a person to the team of an invitation that was just used. @throws NotAccepted */
export async function addMember(
  tx: Queryable,
  invitation: UsedInvitation,
  person: Person,
  request: { readonly from: RequestOrigin | null; readonly keyId: string | null },
): Promise<void> {
  if (!(await teamHasRoomForMember(tx, invitation.id, maxMembers))) throw new NotAccepted('too_many_members');
  const [joined] = await tx.query(insertMember, [invitation.id, person.uid, invitation.role]);
  if (!joined) throw new NotAccepted('already_in_team');
  const creator = { kind: 'user', uid: person.uid, displayName: person.displayName } as const;
  await recordChange(
    tx,
    { teamId: invitation.id, creator, ...request },
    {
      action: 'member.create',
      subject: { type: 'member', uid: person.uid, name: person.displayName },
      after: { role: invitation.role, invitation: invitation.invitation_id },
    },
  );
}

async function takeInvitation(tx: Queryable, key: string, isManagedByRules: IsManagedByRules): Promise<UsedInvitation> {
  if ((await readPausedSince(tx)) !== null) throw new NotAccepted('paused');
  const [invitation] = await tx.query(useInvitation, [hashKey(key)]);
  if (!invitation) throw new NotAccepted('unknown');
  if (isManagedByRules(invitation.uid)) throw new NotAccepted('managed_by_rules');
  return invitation;
}

/** The invitation that the person accepts. */
interface Acceptance {
  readonly key: string;
  readonly isManagedByRules: IsManagedByRules;
}

/** Adds a person who has just signed in to the team of an invitation. @throws NotAccepted */
export async function acceptSignedOn(
  tx: Queryable,
  { key, isManagedByRules }: Acceptance,
  person: Person,
  from: RequestOrigin | null,
): Promise<void> {
  const invitation = await takeInvitation(tx, key, isManagedByRules);
  if (!(await mayJoinAnother(tx, person.uid))) throw new NotAccepted('too_many_teams');
  await addMember(tx, invitation, person, { from, keyId: null });
}

/** Uses an invitation, and does `work` in the same transaction. The invitation can still be used if `work` throws `NotAccepted`. */
export async function acceptWith<T>(
  db: Database,
  { key, isManagedByRules }: Acceptance,
  work: (tx: Queryable, invitation: UsedInvitation) => Promise<T>,
): Promise<T | AcceptRefusal> {
  try {
    return await db.transaction(async (tx) => await work(tx, await takeInvitation(tx, key, isManagedByRules)));
  } catch (error) {
    if (error instanceof NotAccepted) return error.reason;
    throw error;
  }
}

/** Creates a person with a first key, and adds the person to the team of the invitation. Only the result contains the key. */
export async function acceptAsNewPerson(
  db: Database,
  request: AcceptTeamInvitationRequest,
  isManagedByRules: IsManagedByRules,
  from: RequestOrigin,
): Promise<AcceptTeamInvitationResponse | AcceptRefusal> {
  return await acceptWith(db, { key: request.key, isManagedByRules }, async (tx, invitation) => {
    const person = { uid: newUid(), displayName: request.display_name };
    await tx.query(insertUser, [randomUUIDv7(), person.uid, person.displayName, request.email ?? null]);
    await addMember(tx, invitation, person, { from, keyId: null });
    const made = await insertPersonalKey(tx, {
      teamId: invitation.id,
      userUid: person.uid,
      name: 'First key',
      expiresIn: request.expires_in,
    });
    return {
      team: toTeam(invitationTeam(invitation), invitation.id),
      user: {
        type: 'user',
        uid: person.uid,
        display_name: person.displayName,
        ...(request.email === undefined ? {} : { email: request.email }),
      },
      key: made.key,
      ...(made.expires_at === undefined ? {} : { expires_at: made.expires_at }),
    };
  });
}

const invitationTeam = ({ invitation_id: _id, note: _note, ...team }: UsedInvitation) => team;

/** Adds the owner of the key to the team of the invitation. */
export async function joinTeam(
  db: Database,
  principal: Principal,
  acceptance: Acceptance,
): Promise<Team | AcceptRefusal> {
  return await acceptWith(db, acceptance, async (tx, invitation) => {
    if (!(await mayJoinAnother(tx, principal.creator.uid))) throw new NotAccepted('too_many_teams');
    await addMember(tx, invitation, principal.creator, principal);
    return toTeam(invitationTeam(invitation), principal.teamId);
  });
}
