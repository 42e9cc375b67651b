/**
 * Manages the people of teams for which the operator has set rules. By these rules, a person's groups at an identity provider decide in
 * which teams the person is, and with which role.
 */
import { maxMembers } from '@runyard/contract/limits';
import type { Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../audit/record.ts';
import { teamHasRoomForMember } from '../teams/has-room.ts';
import { insertMember } from './accept.ts';
import { endMembership, giveRole, lockMember, takeBackEnd } from './members.ts';
import { mayJoinAnother } from './own-teams.ts';

const why = { managed_by: 'rules' };

/** SQL: the user `u` has the operator's key. Such a user stays in every team, for emergencies. */
const hasOperatorKey = (u: string): string => `
  EXISTS (SELECT FROM team_members o JOIN api_keys k ON k.team_id = o.team_id AND k.user_id = o.user_id
    WHERE o.user_id = ${u} AND k.is_operator)`;

const readTeams = defineStatement({
  name: 'read_teams_of_rules',
  // Every sign-in locks in the same order, so that two sign-ins do not wait for each other's locks.
  text: 'SELECT id, uid FROM teams WHERE uid = ANY($1::text[]) ORDER BY id',
  row: { id: uuid, uid: text() },
});

const readIsOperator = defineStatement({
  name: 'read_whether_user_is_operator',
  text: `SELECT ${hasOperatorKey('u.id')} AS found FROM users u WHERE u.uid = $1`,
  row: { found: boolean },
});

const readOthers = defineStatement({
  name: 'read_members_without_identity_provider',
  text: `
    SELECT u.uid FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND NOT ${hasOperatorKey('m.user_id')}
      AND NOT EXISTS (SELECT FROM sign_on_identities i WHERE i.user_id = m.user_id)`,
  row: { uid: text() },
});

const deleteInvitations = defineStatement({
  name: 'delete_invitations_of_team',
  text: 'DELETE FROM team_invitations WHERE team_id = $1',
  row: {},
});

/** A person who has signed in with an identity provider. */
export interface RuledPerson {
  readonly uid: string;
  readonly displayName: string;
}

/**
 * Gives the person a role in each of these teams. `roles`: the role from the rules by UID of the team. If the role is null, the membership
 * ends, together with the keys and sessions in the team. Returns the UIDs of the teams that the person cannot join, because the team or
 * the person has reached its limit.
 */
export async function applyRoles(
  tx: Queryable,
  person: RuledPerson,
  roles: ReadonlyMap<string, Role | null>,
  request: Pick<Author, 'from'>,
): Promise<string[]> {
  const [operator] = await tx.query(readIsOperator, [person.uid]);
  if (operator?.found) return [];
  const full: string[] = [];
  for (const team of await tx.query(readTeams, [[...roles.keys()]])) {
    const creator = { kind: 'user', uid: person.uid } as const;
    const by = { teamId: team.id, creator, keyId: null, ...request };
    const hasRoom = await applyRole(tx, by, person, roles.get(team.uid) ?? null);
    if (!hasRoom) full.push(team.uid);
  }
  return full;
}

/** Returns false if the team or the person has reached its limit. */
async function applyRole(tx: Queryable, by: Author, person: RuledPerson, role: Role | null): Promise<boolean> {
  const member = await lockMember(tx, by.teamId, person.uid);
  if (member !== null) {
    if (role === null) await endMembership(tx, by, member, why, { canBeTakenBack: true });
    else if (role !== member.role) await giveRole(tx, by, member, role, why);
    return true;
  }
  if (role === null) return true;
  const hasRoom = (await teamHasRoomForMember(tx, by.teamId, maxMembers)) && (await mayJoinAnother(tx, person.uid));
  if (!hasRoom) return false;
  await tx.query(insertMember, [by.teamId, person.uid, role]);
  const joined = await lockMember(tx, by.teamId, person.uid);
  const keys = joined === null ? 0 : await takeBackEnd(tx, by.teamId, joined.id);
  await recordChange(tx, by, {
    action: 'member.create',
    subject: { type: 'member', uid: person.uid, name: person.displayName },
    after: { role, ...why, ...(keys > 0 ? { restored_keys: keys } : {}) },
  });
  return true;
}

/**
 * Removes people without an identity provider from teams that rules manage, and deletes the invitations of these teams, because a team is
 * managed either by rules or by hand. Returns those of the given UIDs for which there is no team.
 */
export async function endManagementByHand(db: Database, teamUids: readonly string[]): Promise<string[]> {
  const teams = await db.query(readTeams, [teamUids]);
  for (const { id } of teams)
    await db.transaction(async (tx) => {
      await tx.query(deleteInvitations, [id]);
      for (const { uid } of await tx.query(readOthers, [id])) {
        const member = await lockMember(tx, id, uid);
        const creator = { kind: 'user', uid } as const;
        if (member !== null) await endMembership(tx, { teamId: id, creator, keyId: null, from: null }, member, why);
      }
    });
  return teamUids.filter((uid) => !teams.some((team) => team.uid === uid));
}
