import type { TimelineEvent, TimelineEventType } from '@runyard/contract/runs/timeline';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';

const readEvents = defineStatement({
  name: 'read_timeline',
  text: `
    SELECT event_uuid, run_id, event_type, occurred_at, execution_number, payload FROM run_events
    WHERE run_id = $1 AND event_type IS NOT NULL ORDER BY seq`,
  row: {
    event_uuid: uuid,
    run_id: uuid,
    event_type: text<TimelineEventType>(),
    occurred_at: timestamp,
    execution_number: nullable(integer),
    payload: nullable(json<Record<string, unknown>>()),
  },
});

/** Returns the setup and lifecycle events of a run in the order in which they were stored. */
export async function readTimeline(db: Queryable, runId: string): Promise<TimelineEvent[]> {
  const rows = await db.query(readEvents, [runId]);
  return rows.map((row) => ({
    event_uuid: row.event_uuid,
    run_id: row.run_id,
    event_type: row.event_type,
    occurred_at: row.occurred_at,
    ...(row.execution_number === null ? {} : { execution_id: row.execution_number }),
    ...(row.payload === null ? {} : { payload: row.payload }),
  }));
}
