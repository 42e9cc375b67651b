import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { newUid } from './uid.ts';

/** A team and its owner. */
export interface FirstTeam {
  readonly teamId: string;
  readonly userId: string;
}

const readFirstTeam = defineStatement({
  name: 'read_first_team',
  text: `
    SELECT m.team_id, m.user_id FROM team_members m JOIN teams t ON t.id = m.team_id JOIN users u ON u.id = m.user_id
    WHERE m.role = 'owner' ORDER BY t.number, u.number LIMIT 1`,
  row: { team_id: uuid, user_id: uuid },
});

/** Returns the oldest team with its oldest owner, and creates both if there are none. Call it under a lock. */
export async function ensureFirstTeam(tx: Queryable): Promise<FirstTeam> {
  const [known] = await tx.query(readFirstTeam);
  if (known) return { teamId: known.team_id, userId: known.user_id };
  const team = { teamId: randomUUIDv7(), userId: randomUUIDv7() };
  await tx.query(`INSERT INTO teams (id, uid, name) VALUES ($1, $2, 'Default team')`, [team.teamId, newUid()]);
  await tx.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, $2, 'Administrator')`, [team.userId, newUid()]);
  await tx.query(`INSERT INTO team_members (team_id, user_id, role) VALUES ($1, $2, 'owner')`, [
    team.teamId,
    team.userId,
  ]);
  return team;
}
