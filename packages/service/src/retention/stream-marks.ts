import type { Queryable, Statement } from '../store/database/database.ts';

const mark: Statement = {
  name: 'mark_event_streams',
  text: 'INSERT INTO event_stream_marks (xact) VALUES (pg_snapshot_xmin(pg_current_snapshot()))',
};

/** Notes where transactions are now: ids of team streams that are before the mark are told to be too old when it is. */
export async function markEventStreams(db: Queryable): Promise<void> {
  await db.query(mark);
}
