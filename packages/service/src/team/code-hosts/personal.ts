import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';

const readPersonal = defineStatement({
  name: 'has_personal_code_host_credentials',
  text: `
    SELECT FROM code_host_credentials c JOIN users u ON u.id = c.user_id WHERE c.team_id = $1 AND u.uid = $2 LIMIT 1`,
  row: {},
});

/** Returns whether a person has stored a credential of their own in the team. */
export const hasPersonalCredentials = async (db: Queryable, teamId: string, personUid: string): Promise<boolean> =>
  (await db.query(readPersonal, [teamId, personUid])).length > 0;
