import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import { isUuid } from '../../store/database/uuid.ts';

const readVisible = defineStatement({
  name: 'is_visible_run',
  text: 'SELECT FROM runs WHERE id = $1 AND team_id = $2',
  row: {},
});

/** Returns true where the team has a run with this id, which may be any text. */
export async function isVisibleRun(db: Queryable, teamId: string, runId: string): Promise<boolean> {
  return isUuid(runId) && (await db.query(readVisible, [runId, teamId])).length === 1;
}
