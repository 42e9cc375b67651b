import type { TimelineEventType } from '@runyard/contract/timeline';
import type { Queryable, Statement } from '../store/database.ts';
import { runChannel } from './engine.ts';

const appendStatement: Statement = {
  name: 'append_timeline_event',
  text: `
    WITH numbered AS (
      UPDATE runs SET event_seq = event_seq + 1, updated_at = clock_timestamp() WHERE id = $1 RETURNING id, event_seq
    ), event AS (
      INSERT INTO run_events (run_id, seq, event_type, execution_number, payload)
      SELECT numbered.id, numbered.event_seq, $3, executions.number, $4::jsonb
      FROM numbered, executions WHERE executions.id = $2
    )
    SELECT pg_notify('${runChannel}', id::text) FROM numbered`,
};

/** Adds an event to the timeline that changes no state, of an execution which may be an older one. */
export async function appendTimelineEvent(
  db: Queryable,
  event: { runId: string; executionId: string; type: TimelineEventType; payload?: Record<string, unknown> },
): Promise<void> {
  await db.query(appendStatement, [
    event.runId,
    event.executionId,
    event.type,
    event.payload ? JSON.stringify(event.payload) : null,
  ]);
}
