import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

const readVisible: Statement = { name: 'is_visible_run', text: 'SELECT FROM runs WHERE id = $1 AND team_id = $2' };

/** True where the team has a run of this id, which may be any text. */
export async function isVisibleRun(db: Queryable, teamId: string, runId: string): Promise<boolean> {
  return isUuid(runId) && (await db.query(readVisible, [runId, teamId])).length === 1;
}
