import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from './actor.ts';
import { isSuspended } from './keys/key.ts';

/** A person or service account in a team. */
export interface TeamActor extends RunActor {
  readonly teamId: string;
}

/**
 * SQL: the person or service account that the SQL expressions name may start runs of the team now. A suspended person may not. Without `OFFSET 0` the planner may read
 * all people and keys.
 */
export const mayStartRunsOf = (teamId: string, kind: string, uid: string): string => `
  CASE ${kind}
    WHEN 'user' THEN EXISTS (
      SELECT FROM users u JOIN team_members m ON m.user_id = u.id
      WHERE u.uid = ${uid} AND m.team_id = ${teamId} AND m.role <> 'viewer'
        AND NOT ${isSuspended('u.id')} OFFSET 0)
    ELSE EXISTS (
      SELECT FROM api_keys k WHERE k.team_id = ${teamId} AND k.kind = 'agent' AND coalesce(k.agent_uid, k.id::text) = ${uid}
        AND (k.expires_at IS NULL OR k.expires_at > now()) OFFSET 0)
    END`;

const readEntitled = defineStatement({
  name: 'read_actors_that_may_start_runs',
  text: `
    SELECT i.team_id, i.kind, i.uid FROM jsonb_to_recordset($1::jsonb) AS i(team_id uuid, kind text, uid text)
    WHERE ${mayStartRunsOf('i.team_id', 'i.kind', 'i.uid')}`,
  row: { team_id: uuid, kind: text<RunActor['kind']>(), uid: text() },
});

/**
 * Reads which of the actors may start runs of their team now: people who are members, and service accounts with a valid key. Returns a
 * function that says whether an actor may start runs.
 */
export async function mayStartRuns(
  db: Queryable,
  actors: readonly TeamActor[],
): Promise<(actor: TeamActor) => boolean> {
  const keyOf = (teamId: string, kind: string, uid: string) => `${teamId} ${kind} ${uid}`;
  const asked = new Map(
    actors.map(({ teamId, kind, uid }) => [keyOf(teamId, kind, uid), { team_id: teamId, kind, uid }]),
  );
  const rows = await db.query(readEntitled, [JSON.stringify([...asked.values()])]);
  const entitled = new Set(rows.map((row) => keyOf(row.team_id, row.kind, row.uid)));
  return ({ teamId, kind, uid }) => entitled.has(keyOf(teamId, kind, uid));
}

const readMembers = defineStatement({
  name: 'read_members_who_may_start_runs',
  text: `
    SELECT 'user' AS kind, u.uid FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND m.role <> 'viewer' ORDER BY u.uid COLLATE "C"`,
  row: { kind: text<RunActor['kind']>(), uid: text() },
});

/** Returns the people of the team who may start runs. */
export const readMembersWhoStart = (db: Queryable, teamId: string): Promise<RunActor[]> =>
  db.query(readMembers, [teamId]);
