/** The order in which the events of a run make up its conversation, as PostgreSQL sorts them: on its disk where they are many. */
import type { Database, Statement } from '../store/database/database.ts';

/**
 * Message by message: the pieces of a text, the output and the end of an action, the decision on a request follow the event that began
 * them. `step_seq` and `item_seq`: the events with which step and message began. Output of an action that was not begun, or has
 * ended, belongs to nothing.
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
    SELECT seq, type, item_seq, max(step) FILTER (WHERE seq = item_seq) OVER (PARTITION BY item, part) AS step
    FROM items WHERE seq >= item_seq
  )
  SELECT seq, item_seq, min(item_seq) OVER (PARTITION BY step) AS step_seq FROM placed
  ORDER BY step_seq, type = 'turn_finished', item_seq, seq`;

const fetchOrder = 'FETCH 20000 FROM conversation_order';

/** What an event begins. */
export const beginsItem = 1;
export const beginsStep = 2;

/** Numbers of events, and for each what it begins: some bytes an event. */
export interface ConversationOrder {
  readonly seqs: readonly Float64Array[];
  readonly marks: readonly Uint8Array[];
}

/** Reads the order of a run's events; `upTo`: only those of its executions up to this number. */
export async function readOrder(db: Database, runId: string, upTo: number | undefined): Promise<ConversationOrder> {
  return await db.transaction(async (tx) => {
    await tx.query(declareOrder, [runId, upTo ?? null]);
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

/** As many of the events as are a megabyte together, one at least, in the order of their numbers in `$2`. */
const readPage: Statement = {
  name: 'read_conversation_page',
  text: `
    SELECT execution_id, event FROM (
      SELECT o.place, v.execution_id, v.event, octet_length(v.event::text) AS size,
        sum(octet_length(v.event::text)) OVER (ORDER BY o.place) AS upto
      FROM unnest($2::bigint[]) WITH ORDINALITY AS o(seq, place) LEFT JOIN conversation_events v ON v.run_id = $1 AND v.seq = o.seq
    ) sized WHERE place = 1 OR upto <= 1024 * 1024 ORDER BY place`,
};

interface PlacedEvent {
  readonly execution_id: string;
  readonly event: unknown;
}

const firstCount = 100;
const maxCount = 2000;

/**
 * The events in this order, some of them in memory at a time. Throws where one is not there any more: the run was deleted, or its events
 * were merged, and what was read so far is a part of something else.
 */
export async function* readInOrder(
  db: Database,
  runId: string,
  { seqs, marks }: ConversationOrder,
): AsyncGenerator<PlacedEvent & { readonly mark: number }> {
  let count = firstCount;
  for (const [index, chunk] of seqs.entries()) {
    for (let at = 0; at < chunk.length; ) {
      const asked = chunk.subarray(at, at + count);
      const rows = await db.query<PlacedEvent>(readPage, [runId, [...asked]]);
      for (const row of rows) {
        if (row.event === null) throw new Error('the conversation changed while it was read');
        yield { ...row, mark: marks[index]?.[at] ?? 0 };
        at += 1;
      }
      // Events that are not sent are measured all the same: large ones are asked for in small numbers.
      count = rows.length < asked.length ? Math.max(1, rows.length) : Math.min(maxCount, count * 2);
    }
  }
}
