import { insertConversationEvents } from '../../conversations/insert-events.ts';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import { runChannel } from '../channels.ts';

/** Numbers the rows after the run's last event, counts their bytes and writes them to the timeline and the conversation. */
const insertEvents = defineStatement({
  name: 'insert_agent_events',
  text: `
    WITH input AS (
      SELECT i.event_type, i.event, i.occurred_at, row_number() OVER (ORDER BY i.position) AS n
      FROM jsonb_to_recordset($3::jsonb) AS i(position integer, event_type text, event jsonb, occurred_at timestamptz)
    ), counted AS (
      UPDATE runs SET event_seq = event_seq + (SELECT count(*) FROM input), event_bytes = event_bytes + $4, updated_at = clock_timestamp()
      WHERE id = $1 RETURNING id, event_seq - (SELECT count(*) FROM input) AS base
    ), numbered AS (
      SELECT counted.id AS run_id, counted.base + input.n AS seq, input.event_type, input.occurred_at, input.event
      FROM counted, input
    ), timeline AS (
      INSERT INTO run_events (run_id, seq, event_type, occurred_at, execution_number, payload)
      SELECT run_id, seq, event_type, occurred_at, (SELECT number FROM executions WHERE id = $2), event
      FROM numbered WHERE event_type IS NOT NULL
    ), conversation AS (${insertConversationEvents({ relation: 'numbered', where: 'event_type IS NULL', executionId: '$2' })}
    )
    SELECT pg_notify('${runChannel}', id::text) FROM counted`,
  row: {},
});

/**
 * Stores events of an agent in their order and notifies those who follow the run. Each row is the JSON of `{position, event_type?,
 * event, occurred_at}`: with `event_type` it goes to the timeline, without to the conversation. `bytes` is added to the run's
 * `event_bytes`. The caller has locked the run's row.
 */
export async function storeAgentEvents(
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  rows: readonly string[],
  bytes: number,
): Promise<void> {
  if (rows.length > 0) await tx.query(insertEvents, [runId, executionId, `[${rows.join(',')}]`, bytes]);
}
