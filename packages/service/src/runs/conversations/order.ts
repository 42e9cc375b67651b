/**
 * Reads the events of a run in the order of its conversation. PostgreSQL sorts the events; for many events, it uses its disk.
 */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, json, nullable, uuid } from '../../platform/store/database/statement.ts';

/**
 * Orders the events message by message. The pieces of a text, the output and result of an action, and the decision on a request follow the
 * event that began the message. `step_seq` and `item_seq` are the numbers of the events that began the step and the message. The statement
 * leaves out output that was reported before its action began or after it ended.
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

/** This statement declares no columns, because PostgreSQL can describe a FETCH only while the cursor is open. */
const fetchOrder = 'FETCH 20000 FROM conversation_order';

/** Mark of an event that begins a message. */
export const beginsItem = 1;
/** Mark of an event that begins a step. */
export const beginsStep = 2;

/** The numbers of the events, in order, and a mark for each event. Takes about 10 bytes per event. */
export interface ConversationOrder {
  readonly seqs: readonly Float64Array[];
  readonly marks: readonly Uint8Array[];
}

/** Selects a part of the conversation of a run. */
export interface ConversationRange {
  /** Selects only events of the run's executions up to the execution with this number; absent: of all executions. */
  readonly upTo?: number;
  /** Selects only messages whose last event has a greater number. */
  readonly after?: number;
  /** Selects only messages whose last event has this number or a smaller number. */
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

/** An event that was merged from several events has all their numbers, from `from_seq` to `seq`. */
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

/** Returns the order of all events of the message to which the event with the number `seq` belongs; empty if it belongs to no message. */
export async function readOrderOfMessage(db: Queryable, runId: string, seq: number): Promise<ConversationOrder> {
  const seqs = Float64Array.from(await db.query(readMessage, [runId, seq]), (row) => row.seq);
  return { seqs: [seqs], marks: [Uint8Array.from(seqs, (_, index) => (index === 0 ? beginsItem | beginsStep : 0))] };
}

/**
 * Reads the events with the numbers in the list `$2`, in the order of the list. Returns the first event, and further events as long as
 * all returned events together have at most 1 MiB.
 */
const readPage = defineStatement({
  name: 'read_conversation_page',
  text: `
    SELECT execution_id, event FROM (
      SELECT o.place, v.execution_id, v.event, octet_length(v.event::text) AS size,
        sum(octet_length(v.event::text)) OVER (ORDER BY o.place) AS upto
      FROM unnest($2::bigint[]) WITH ORDINALITY AS o(seq, place) LEFT JOIN conversation_events v ON v.run_id = $1 AND v.seq = o.seq
    ) sized WHERE place = 1 OR upto <= 1024 * 1024 ORDER BY place`,
  /** Both columns are NULL if the event does not exist any more. */
  row: { execution_id: nullable(uuid), event: nullable(json<AgentEvent>()) },
});

/** An event of the conversation, with a mark if it begins a message or a step. */
interface PlacedEvent {
  readonly executionId: string;
  readonly event: AgentEvent;
  /** `beginsItem`, `beginsStep`, their sum, or 0. */
  readonly mark: number;
}

/** Number of events that are requested with the first page. */
const firstCount = 100;
const maxCount = 2000;

/**
 * Reads the events in the order of `order`, and holds only one page of events in memory. Throws if an event no longer exists, because the
 * run was deleted or its events were merged: the next pages would not fit the pages that were already read.
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
      // The database measures all requested events, even those that do not fit the page. So request only a few events at a time if events
      // are large.
      count = rows.length < asked.length ? Math.max(1, rows.length) : Math.min(maxCount, count * 2);
    }
  }
}
