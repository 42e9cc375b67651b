import type { Queryable, Statement } from '../../platform/store/database/database.ts';

const mark: Statement = {
  name: 'mark_event_streams',
  text: 'INSERT INTO event_stream_marks (xact) VALUES (pg_snapshot_xmin(pg_current_snapshot()))',
};

/** Records the current transaction number. When the mark is old enough, ids of team streams before it are refused as too old. */
export async function markEventStreams(db: Queryable): Promise<void> {
  await db.query(mark);
}
