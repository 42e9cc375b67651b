/** Deletes the detail of old conversations that is in the tables of runs. */
import type { DeletedDetail } from '../../../platform/domain.ts';
import type { Queryable, Statement } from '../../../platform/store/database/database.ts';

const deleteFollowups: Statement = {
  name: 'delete_old_followups',
  text: 'DELETE FROM followups WHERE run_id = ANY($1::uuid[]) AND execution_id IS NOT NULL',
};

/** The counters begin at 0, so that a run which is continued has its whole room again. */
const markDeleted: Statement = {
  name: 'mark_runs_without_detail',
  text: `
    UPDATE runs SET detail_deleted_at = clock_timestamp(), event_bytes = 0, transcript_bytes = 0, dropped_events = 0, dropped_lines = 0
    WHERE id = ANY($1::uuid[])`,
};

/** Deletes the taken follow-ups of these runs and marks the runs. Must come after all other domains. */
export async function deleteRunDetail(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  await tx.query(deleteFollowups, [runIds]);
  await tx.query(markDeleted, [runIds]);
  return { blobKeys: [], isDone: true };
}
