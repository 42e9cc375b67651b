/** Lists, creates and renames the teams of the caller. */
import { randomUUIDv7 } from 'node:crypto';
import { maxTeamsOfPerson } from '@runyard/contract/limits';
import type { Team } from '@runyard/contract/team/teams';
import type { Role } from '@runyard/contract/wire/access';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import type { Principal } from '../keys/principal.ts';
import { newUid } from '../teams/uid.ts';

const teamRow = { id: uuid, uid: text(), name: text(), role: text<Role>(), created_at: timestamp };

const readTeamsOfUser = defineStatement({
  name: 'read_teams_of_user',
  text: `
    SELECT t.id, t.uid, t.name, m.role, t.created_at FROM teams t
    JOIN team_members m ON m.team_id = t.id JOIN users u ON u.id = m.user_id
    WHERE u.uid = $1 ORDER BY t.number`,
  row: teamRow,
});

const readTeam = defineStatement({
  name: 'read_team',
  text: `SELECT id, uid, name, 'member' AS role, created_at FROM teams WHERE id = $1`,
  row: teamRow,
});

const lockTeams = defineStatement({
  name: 'lock_teams_of_user',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('teams of ' || $1, 0))`,
  row: {},
});

const readHasRoom = defineStatement({
  name: 'read_whether_user_may_be_in_another_team',
  text: `
    SELECT count(*) < ${maxTeamsOfPerson} AS room FROM team_members m JOIN users u ON u.id = m.user_id WHERE u.uid = $1`,
  row: { room: boolean },
});

const insertTeam = defineStatement({
  name: 'insert_team',
  text: `
    WITH team AS (INSERT INTO teams (id, uid, name) VALUES ($1, $2, $3) RETURNING id, uid, name, created_at),
      owner AS (INSERT INTO team_members (team_id, user_id, role) SELECT $1, id, 'owner' FROM users WHERE uid = $4 RETURNING role)
    SELECT team.id, team.uid, team.name, owner.role, team.created_at FROM team, owner`,
  row: teamRow,
});

const lockName = defineStatement({
  name: 'lock_team_name',
  text: 'SELECT name FROM teams WHERE id = $1 FOR NO KEY UPDATE',
  row: { name: text() },
});

const renameRow = defineStatement({
  name: 'rename_team',
  text: 'UPDATE teams SET name = $2 WHERE id = $1 RETURNING id, uid, name, created_at',
  row: { id: uuid, uid: text(), name: text(), created_at: timestamp },
});

export const toTeam = ({ id, ...row }: RowOf<typeof readTeamsOfUser>, currentId: string): Team => ({
  ...row,
  is_current: id === currentId,
});

/** Returns the teams of the caller, oldest first. */
export async function listTeams(db: Queryable, { creator, teamId }: Principal): Promise<Team[]> {
  const rows = await (creator.kind === 'user'
    ? db.query(readTeamsOfUser, [creator.uid])
    : db.query(readTeam, [teamId]));
  return rows.map((row) => toTeam(row, teamId));
}

/**
 * Returns whether the person may join one more team. Holds a lock until the transaction ends. So if two joins are concurrent, the later
 * join also counts the earlier join.
 */
export async function mayJoinAnother(tx: Queryable, userUid: string): Promise<boolean> {
  await tx.query(lockTeams, [userUid]);
  const [count] = await tx.query(readHasRoom, [userUid]);
  return count?.room ?? false;
}

/** Creates a team whose owner is the caller. `too_many`: the caller is already in the maximum number of teams. */
export async function createTeam(tx: Queryable, principal: Principal, name: string): Promise<Team | 'too_many'> {
  if (!(await mayJoinAnother(tx, principal.creator.uid))) return 'too_many';
  const [row] = await tx.query(insertTeam, [randomUUIDv7(), newUid(), name, principal.creator.uid]);
  if (!row) throw new Error('the team was not inserted');
  // Write the entry to the log of the new team, so that the team's administrators see who created it.
  const by = { ...principal, teamId: row.id };
  await recordChange(tx, by, { action: 'team.create', subject: { type: 'team', uid: row.uid, name }, after: { name } });
  return toTeam(row, principal.teamId);
}

/** Renames the team of the caller. */
export async function renameTeam(db: Database, principal: Principal, name: string): Promise<Team> {
  return await db.transaction(async (tx) => {
    const [before] = await tx.query(lockName, [principal.teamId]);
    const [row] = await tx.query(renameRow, [principal.teamId, name]);
    if (!before || !row) throw new Error('the team of the caller does not exist');
    const subject = { type: 'team', uid: row.uid, name };
    await recordChange(tx, principal, {
      action: 'team.update',
      subject,
      before: { name: before.name },
      after: { name },
    });
    return toTeam({ ...row, role: principal.role }, principal.teamId);
  });
}

const readAllTeams = defineStatement({
  name: 'read_all_teams',
  text: 'SELECT id, uid, name FROM teams ORDER BY name COLLATE "C", uid',
  row: { id: uuid, uid: text(), name: text() },
});

/** Returns all teams of the installation, for its operator. */
export const listAllTeams = (db: Queryable): Promise<{ id: string; uid: string; name: string }[]> =>
  db.query(readAllTeams);
