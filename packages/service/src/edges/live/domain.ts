import type { Domain, NightlyTask, RowRule } from '../../platform/domain.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';

const mark = defineStatement({
  name: 'mark_event_streams',
  text: 'INSERT INTO event_stream_marks (xact) VALUES (pg_snapshot_xmin(pg_current_snapshot()))',
  row: {},
});

/**
 * Records the current transaction number. When this mark is older than the window of team streams, the service refuses ids with an earlier
 * transaction number as too old.
 */
async function markEventStreams(db: Queryable): Promise<void> {
  await db.query(mark);
}

/** `team-events.ts` uses only the newest mark that is older than the window of team streams (7 days), so the service deletes marks after 30 days. */
const oldMarks: RowRule = { table: 'event_stream_marks', isOver: `marked_at < now() - interval '30 days'` };

const markStreams: NightlyTask = {
  name: 'stream_marks',
  run: async (db) => {
    await markEventStreams(db);
    return { rows: 1, more: false };
  },
};

export const liveDomain: Domain = { name: 'live', retention: { rows: [oldMarks], nightly: [markStreams] } };
