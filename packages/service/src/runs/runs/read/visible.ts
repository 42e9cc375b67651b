import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';

const readVisible = defineStatement({
  name: 'is_visible_run',
  text: 'SELECT FROM runs WHERE id = $1 AND team_id = $2',
  row: {},
});

/** Returns true where the team has a run with this id, which may be any text. */
export async function isVisibleRun(db: Queryable, teamId: string, runId: string): Promise<boolean> {
  return isUuid(runId) && (await db.query(readVisible, [runId, teamId])).length === 1;
}
