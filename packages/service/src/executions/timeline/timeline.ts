import type { TimelineEvent, TimelineEventType } from '@runyard/contract/timeline';
import type { Queryable, Statement } from '../../store/database/database.ts';

const readEvents: Statement = {
  name: 'read_timeline',
  text: `
    SELECT event_uuid, run_id, event_type, occurred_at, execution_number, payload FROM run_events
    WHERE run_id = $1 AND event_type IS NOT NULL ORDER BY seq`,
};

interface EventRow {
  event_uuid: string;
  run_id: string;
  event_type: TimelineEventType;
  occurred_at: string;
  execution_number: number | null;
  payload: Record<string, unknown> | null;
}

/** Setup and lifecycle events of a run, in the order in which they were stored. */
export async function readTimeline(db: Queryable, runId: string): Promise<TimelineEvent[]> {
  const rows = await db.query<EventRow>(readEvents, [runId]);
  return rows.map((row) => ({
    event_uuid: row.event_uuid,
    run_id: row.run_id,
    event_type: row.event_type,
    occurred_at: row.occurred_at,
    ...(row.execution_number === null ? {} : { execution_id: row.execution_number }),
    ...(row.payload === null ? {} : { payload: row.payload }),
  }));
}
