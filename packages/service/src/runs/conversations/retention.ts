/**
 * Merges the small events of ended runs, and deletes the conversations of old runs. Agents send text and output in pieces of a few words,
 * and each piece is a row: most rows of a conversation are such pieces. A day after the end of a run, the service merges adjacent pieces
 * into one row, which has the number of the last piece.
 */
import type { DeletedDetail } from '../../platform/domain.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text, uuid } from '../../platform/store/database/statement.ts';

const runsAtOnce = 50;
/** Maximum number of rows of a run that one statement reads. Pieces that two statements read are never merged with each other. */
const rowsAtOnce = 20_000;
/** When the text of a merged event has this number of bytes, no further piece is added. */
const maxTextBytes = 32 * 1024;

const place = { endedAt: text(), id: uuid };

const readPlace = defineStatement({
  name: 'read_place_of_event_merges',
  text: 'SELECT ended_at::text AS "endedAt", run_id AS id FROM event_merges',
  row: place,
});

const keepPlace = defineStatement({
  name: 'keep_place_of_event_merges',
  text: `
    INSERT INTO event_merges (ended_at, run_id) VALUES ($1, $2)
    ON CONFLICT (is_only) DO UPDATE SET ended_at = excluded.ended_at, run_id = excluded.run_id`,
  row: {},
});

/**
 * The events of a run are merged a day after its end, because every live stream has then sent all of them. If a run is continued and ends
 * again, the new events are merged too.
 */
const readEnded = defineStatement({
  name: 'read_ended_runs_for_merge',
  text: `
    SELECT id, closed_at::text AS "endedAt" FROM runs
    WHERE has_detail AND closed_at < now() - interval '1 day' AND (closed_at, id) > ($1::timestamptz, $2::uuid)
    ORDER BY closed_at, id LIMIT ${runsAtOnce}`,
  row: place,
});

const lockEnded = defineStatement({
  name: 'lock_ended_run_for_merge',
  text: `SELECT id FROM runs WHERE id = $1 AND ended_at < now() - interval '1 day' FOR UPDATE`,
  row: { id: uuid },
});

/**
 * Merges pieces of the same message or action if their numbers are adjacent, so no other event came between them. A merged piece has all
 * numbers from `from_seq` to `seq`.
 */
const mergePage = defineStatement({
  name: 'merge_events',
  text: `
    WITH page AS MATERIALIZED (
      SELECT seq, coalesce(from_seq, seq) AS from_seq, event, CASE event->>'type'
        WHEN 'text' THEN jsonb_build_array(execution_id, event->'step_id', event->'message_id', event->'role')
        WHEN 'action_output' THEN jsonb_build_array(execution_id, event->'action_id') END AS joins
      FROM conversation_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT ${rowsAtOnce}
    ), marked AS (
      SELECT *, joins IS NULL OR joins IS DISTINCT FROM lag(joins) OVER w OR from_seq <> lag(seq) OVER w + 1 AS is_first
      FROM page WINDOW w AS (ORDER BY seq)
    ), counted AS (
      SELECT *, count(*) FILTER (WHERE is_first) OVER (ORDER BY seq) AS line FROM marked
    ), cut AS (
      SELECT *, coalesce(sum(octet_length(event->>'text')) OVER (PARTITION BY line ORDER BY seq), 0) / ${maxTextBytes} AS part FROM counted
    ), merged AS (
      SELECT min(from_seq) AS from_seq, max(seq) AS seq, string_agg(event->>'text', '' ORDER BY seq) AS text,
        (array_agg(event ORDER BY seq))[1] AS event
      FROM cut WHERE joins IS NOT NULL GROUP BY line, floor(part) HAVING count(*) > 1
    ), gone AS (
      DELETE FROM conversation_events c USING merged m
      WHERE c.run_id = $1 AND c.seq >= m.from_seq AND c.seq < m.seq RETURNING 1
    ), kept AS (
      UPDATE conversation_events c SET from_seq = m.from_seq, event = m.event || jsonb_build_object('text', m.text)
      FROM merged m WHERE c.run_id = $1 AND c.seq = m.seq RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM page) AS looked_at, (SELECT max(seq) FROM page) AS last_seq`,
  row: { gone: integer, looked_at: integer, last_seq: nullable(integer) },
});

async function mergeRun(tx: Queryable, runId: string): Promise<number> {
  if ((await tx.query(lockEnded, [runId])).length === 0) return 0;
  let mergedRows = 0;
  for (let after = 0; ; ) {
    const [page] = await tx.query(mergePage, [runId, after]);
    mergedRows += page?.gone ?? 0;
    if (!page || page.last_seq === null || page.looked_at < rowsAtOnce) return mergedRows;
    after = page.last_seq;
  }
}

/**
 * Merges the events of some runs, each run in a separate transaction. The next call of this function takes the next runs.
 */
export async function mergeOldEvents(db: Database): Promise<{ readonly rows: number; readonly more: boolean }> {
  const [last] = await db.query(readPlace);
  const runs = await db.query(readEnded, [
    last?.endedAt ?? '-infinity',
    last?.id ?? '00000000-0000-0000-0000-000000000000',
  ]);
  let rows = 0;
  for (const { id } of runs) rows += await db.transaction(async (tx) => await mergeRun(tx, id));
  const newest = runs.at(-1);
  if (newest) await db.query(keepPlace, [newest.endedAt, newest.id]);
  return { rows, more: runs.length === runsAtOnce };
}

const eventsAtOnce = 10_000;

const deleteEvents = defineStatement({
  name: 'delete_old_conversation_events',
  text: `
    DELETE FROM conversation_events c
    USING (SELECT run_id, seq FROM conversation_events WHERE run_id = ANY($1::uuid[]) LIMIT ${eventsAtOnce}) old
    WHERE c.run_id = old.run_id AND c.seq = old.seq RETURNING 1 AS one`,
  row: { one: integer },
});

const deleteChunks = defineStatement({
  name: 'delete_old_transcript_chunks',
  text: `
    DELETE FROM transcript_chunks USING executions e
    WHERE e.id = transcript_chunks.execution_id AND e.run_id = ANY($1::uuid[])`,
  row: {},
});

/** Deletes at most 10,000 events of these runs. If no events are left, also deletes the stored rows of the runs' transcripts. */
export async function deleteConversations(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  const events = await tx.query(deleteEvents, [runIds]);
  const isDone = events.length < eventsAtOnce;
  if (isDone) await tx.query(deleteChunks, [runIds]);
  return { blobKeys: [], isDone };
}
