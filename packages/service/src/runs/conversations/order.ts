/**
 * Reads the events of a run in the order of its conversation. PostgreSQL sorts them, on its disk if there are many.
 */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, json, nullable, uuid } from '../../platform/store/database/statement.ts';

/**
 * Orders the events message by message. The pieces of a text, the output and result of an action, and the decision on a request follow the
 * event that began the message. `step_seq` and `item_seq` are the numbers of the events that began the step and the message. Output of an
 * action that has not begun, or has ended, is left out.
 */
const declareOrder = `
  DECLARE conversation_order NO SCROLL CURSOR FOR
  WITH said AS (
    SELECT seq, event->>'type' AS type, event->>'step_id' AS step,
      CASE event->>'type'
        WHEN 'text' THEN 'text ' || execution_id || ' ' || (event->>'message_id')
        WHEN 'action' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
        WHEN 'action_output' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
        WHEN 'action_result' THEN 'action ' || execution_id || ' ' || (event->>'action_id')
        WHEN 'blocked' THEN 'request ' || (event->'request'->>'request_id')
        WHEN 'decided' THEN 'request ' || (event->>'request_id')
        ELSE 'event ' || seq END AS item,
      event->>'type' = 'action_result' AND event->>'state' <> 'running' AS ends
    FROM conversation_events
    WHERE run_id = $1 AND ($2::int IS NULL OR execution_id IN (SELECT id FROM executions WHERE run_id = $1 AND number <= $2))
      AND event->>'type' IN ('turn_started', 'turn_finished', 'text', 'action', 'action_output', 'action_result', 'notice', 'blocked', 'decided')
  ), parted AS (
    SELECT *, count(*) FILTER (WHERE ends) OVER (PARTITION BY item ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS part
    FROM said
  ), items AS (
    SELECT *, min(seq) FILTER (WHERE type NOT IN ('action_output', 'action_result')) OVER (PARTITION BY item, part) AS item_seq FROM parted
  ), placed AS (
    SELECT seq, type, item_seq, max(step) FILTER (WHERE seq = item_seq) OVER (PARTITION BY item, part) AS step,
      max(seq) OVER (PARTITION BY item, part) AS last_seq
    FROM items WHERE seq >= item_seq
  )
  SELECT seq, item_seq, min(item_seq) OVER (PARTITION BY step) AS step_seq FROM placed
  WHERE ($3::bigint IS NULL OR last_seq > $3) AND ($4::bigint IS NULL OR last_seq <= $4)
  ORDER BY step_seq, type = 'turn_finished', item_seq, seq`;

/** Has no declared columns: PostgreSQL describes a FETCH only while its cursor is open. */
const fetchOrder = 'FETCH 20000 FROM conversation_order';

/** Marks an event that begins a message. */
export const beginsItem = 1;
/** Marks an event that begins a step. */
export const beginsStep = 2;

/** The numbers of events, and a mark for each: about 10 bytes an event. */
export interface ConversationOrder {
  readonly seqs: readonly Float64Array[];
  readonly marks: readonly Uint8Array[];
}

/** A part of the conversation of a run. */
export interface ConversationRange {
  /** Only events of the run's executions up to this number; absent: all events. */
  readonly upTo?: number;
  /** Only messages that ended after the event with this number. */
  readonly after?: number;
  /** Only messages that ended with this event or an earlier one. */
  readonly until?: number;
}

/** Reads the order of the events of a part of a run's conversation. */
export async function readOrder(
  db: Database,
  runId: string,
  { upTo, after, until }: ConversationRange,
): Promise<ConversationOrder> {
  return await db.transaction(async (tx) => {
    await tx.query(declareOrder, [runId, upTo ?? null, after ?? null, until ?? null]);
    const seqs: Float64Array[] = [];
    const marks: Uint8Array[] = [];
    let item = -1;
    let step = -1;
    for (;;) {
      const rows = await tx.query<{ seq: number; item_seq: number; step_seq: number }>(fetchOrder);
      if (rows.length === 0) return { seqs, marks };
      seqs.push(Float64Array.from(rows, (row) => row.seq));
      marks.push(
        Uint8Array.from(rows, (row) => {
          const mark = (row.item_seq === item ? 0 : beginsItem) | (row.step_seq === step ? 0 : beginsStep);
          item = row.item_seq;
          step = row.step_seq;
          return mark;
        }),
      );
    }
  });
}

/** An event that was merged has all numbers from `from_seq` to `seq`. */
const readMessage = defineStatement({
  name: 'read_order_of_message',
  text: `
    WITH begun AS (
      SELECT seq, execution_id, event->>'type' AS type, event->>'action_id' AS action, event->>'message_id' AS message
      FROM (SELECT * FROM conversation_events WHERE run_id = $1 AND seq >= $2 ORDER BY seq LIMIT 1) v
      WHERE (seq = $2 OR from_seq <= $2) AND event->>'type' IN ('turn_started', 'text', 'action', 'notice', 'blocked', 'decided')
    ), bounds AS (
      SELECT b.*, CASE type WHEN 'text' THEN 0 ELSE seq END AS first_seq, CASE type
        WHEN 'text' THEN ${Number.MAX_SAFE_INTEGER}
        WHEN 'action' THEN coalesce((
          SELECT r.seq FROM conversation_events r
          WHERE r.run_id = $1 AND r.seq > b.seq AND r.execution_id = b.execution_id AND r.event->>'type' = 'action_result'
            AND r.event->>'action_id' = b.action AND r.event->>'state' <> 'running' ORDER BY r.seq LIMIT 1
        ), ${Number.MAX_SAFE_INTEGER})
        ELSE seq END AS last_seq
      FROM begun b
    )
    SELECT v.seq FROM bounds b JOIN conversation_events v
      ON v.run_id = $1 AND v.seq BETWEEN b.first_seq AND b.last_seq AND v.execution_id = b.execution_id
    WHERE v.seq = b.seq
      OR b.type = 'text' AND v.event->>'type' = 'text' AND v.event->>'message_id' = b.message
      OR b.type = 'action' AND v.event->>'action_id' = b.action AND v.event->>'type' IN ('action', 'action_output', 'action_result')
    ORDER BY v.seq`,
  row: { seq: integer },
});

/** Reads the order of all events of this event's message; empty if the event belongs to no message. */
export async function readOrderOfMessage(db: Queryable, runId: string, seq: number): Promise<ConversationOrder> {
  const seqs = Float64Array.from(await db.query(readMessage, [runId, seq]), (row) => row.seq);
  return { seqs: [seqs], marks: [Uint8Array.from(seqs, (_, index) => (index === 0 ? beginsItem | beginsStep : 0))] };
}

/** Reads the events with the numbers `$2`, in that order. Returns at least one event. Several events together have at most a megabyte. */
const readPage = defineStatement({
  name: 'read_conversation_page',
  text: `
    SELECT execution_id, event FROM (
      SELECT o.place, v.execution_id, v.event, octet_length(v.event::text) AS size,
        sum(octet_length(v.event::text)) OVER (ORDER BY o.place) AS upto
      FROM unnest($2::bigint[]) WITH ORDINALITY AS o(seq, place) LEFT JOIN conversation_events v ON v.run_id = $1 AND v.seq = o.seq
    ) sized WHERE place = 1 OR upto <= 1024 * 1024 ORDER BY place`,
  /** NULL: the event does not exist any more. */
  row: { execution_id: nullable(uuid), event: nullable(json<AgentEvent>()) },
});

/** An event in its place in the conversation. */
interface PlacedEvent {
  readonly executionId: string;
  readonly event: AgentEvent;
  /** `beginsItem`, `beginsStep`, their sum, or 0. */
  readonly mark: number;
}

/** Events that are requested with the first page. */
const firstCount = 100;
const maxCount = 2000;

/**
 * Reads the events in this order, and holds only one page of them in memory. Throws if an event no longer exists: the run was deleted, *
 * or its events were merged, so the next pages would not fit the earlier pages.
 */
export async function* readInOrder(
  db: Database,
  runId: string,
  { seqs, marks }: ConversationOrder,
): AsyncGenerator<PlacedEvent> {
  let count = firstCount;
  for (const [index, chunk] of seqs.entries()) {
    for (let at = 0; at < chunk.length; ) {
      const asked = chunk.subarray(at, at + count);
      const rows = await db.query(readPage, [runId, [...asked]]);
      for (const { execution_id: executionId, event } of rows) {
        if (executionId === null || event === null) throw new Error('the conversation changed while it was read');
        yield { executionId, event, mark: marks[index]?.[at] ?? 0 };
        at += 1;
      }
      // The database also measures events that it does not return. So request only a few events at a time if they are large.
      count = rows.length < asked.length ? Math.max(1, rows.length) : Math.min(maxCount, count * 2);
    }
  }
}
