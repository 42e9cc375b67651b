import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../../platform/store/database/statement.ts';

const hasOne = defineStatement({
  name: 'has_one_team',
  text: 'SELECT NOT EXISTS (SELECT FROM teams OFFSET 1) AS is_only',
  row: { is_only: boolean },
});

/** Returns whether the service has only one team. */
export async function hasOneTeam(db: Queryable): Promise<boolean> {
  const [row] = await db.query(hasOne);
  return row?.is_only === true;
}
