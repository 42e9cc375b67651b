/** Reads the events of runs from the tables and turns them into frames. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { Page } from './feed.ts';
import { eventBytes, type Frame } from './frame.ts';

/**
 * A position in the stream of a run: twice the number of the last row that the stream got. This number minus one means that the stream got
 * the first event of the row (timeline) but not the second (state).
 */
export type RunPosition = number;

/** The id of an event: `7`, or `7.1` for the first of two events of a row. */
const runId = /^(\d{1,15})(\.1)?$/;

/** Parses the id of an event; null: not an id of a run's stream. */
export function parseRunPosition(id: string): RunPosition | null {
  const match = runId.exec(id);
  if (!match) return null;
  const position = Number(match[1]) * 2 - (match[2] ? 1 : 0);
  return position >= 0 ? position : null;
}

/** The columns of `run_events` that become events of the stream. */
export interface TimelineRow {
  event_uuid: string;
  event_type: TimelineEventType | null;
  state: RunState | null;
  occurred_at: string;
  execution_number: number | null;
  payload: Record<string, unknown> | null;
}

/** Makes the one or two events of a row: the timeline event, then the state. */
export function* eventsOfRow(runId: string, row: TimelineRow): Generator<Exclude<LiveEvent, { type: 'conversation' }>> {
  if (row.event_type) {
    yield {
      type: 'timeline',
      event: {
        event_uuid: row.event_uuid,
        run_id: runId,
        event_type: row.event_type,
        occurred_at: row.occurred_at,
        ...(row.execution_number === null ? {} : { execution_id: row.execution_number }),
        ...(row.payload ? { payload: row.payload } : {}),
      },
    };
  }
  if (row.state) {
    const { message, error_code } = row.payload ?? {};
    yield {
      type: 'state',
      state: row.state,
      ...(typeof message === 'string' ? { status_message: message } : {}),
      ...(typeof error_code === 'string' ? { error_code } : {}),
    };
  }
}

/** Returns the number of the last row that the stream got completely. */
export const rowOf = (position: RunPosition): number => Math.floor(position / 2);

/** Returns the position after all events of this row. */
export const afterRow = (seq: number): RunPosition => seq * 2;

/** A request for the events of a run. */
interface RunQuestion {
  readonly runId: string;
  /** The page begins after the row with this number. */
  readonly after: number;
}

/** Maximum size of a page in bytes, measured as PostgreSQL stores the events. The last event of a page may exceed this size. */
const maxPageBytes = 256 * 1024;

/**
 * Reads at most $3 rows for each run. If a run's row has no `seq`, no event exists after `after`. If the result has no row for a run, the
 * run was deleted.
 */
const readPages = defineStatement({
  name: 'read_live_pages',
  text: `
    SELECT w.n::int AS n, r.state AS run_state, r.event_seq, r.events_kept_after,
      r.state = 'FAILED' AND (SELECT e.phase = 'running' FROM executions e WHERE e.id = r.current_execution_id) AS is_debugged, v.*
    FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS w(run_id, after, n)
    JOIN runs r ON r.id = w.run_id
    LEFT JOIN LATERAL (
      SELECT b.* FROM (
        SELECT u.*, count(*) OVER () AS candidates, sum(u.size) OVER (ORDER BY u.seq) - u.size AS bytes_before
        FROM (
          (SELECT seq, event_uuid, event_type, state, occurred_at, execution_number, payload, NULL::jsonb AS event, NULL::bigint AS from_seq,
             coalesce(pg_column_size(payload), 0) AS size
           FROM run_events WHERE run_id = w.run_id AND seq > w.after ORDER BY seq LIMIT $3)
          UNION ALL
          (SELECT seq, NULL, NULL, NULL, NULL, NULL, NULL, event, from_seq, pg_column_size(event)
           FROM conversation_events WHERE run_id = w.run_id AND seq > w.after ORDER BY seq LIMIT $3)
          ORDER BY seq LIMIT $3
        ) u
      ) b WHERE b.bytes_before < ${maxPageBytes}
    ) v ON r.event_seq > w.after
    ORDER BY w.n, v.seq`,
  row: {
    n: integer,
    run_state: text<RunState>(),
    event_seq: integer,
    events_kept_after: integer,
    /** True if a turn is in progress in the sandbox that the run keeps after a failed setup. */
    is_debugged: nullable(boolean),
    seq: nullable(integer),
    event_uuid: nullable(uuid),
    event_type: nullable(text<TimelineEventType>()),
    state: nullable(text<RunState>()),
    occurred_at: nullable(timestamp),
    execution_number: nullable(integer),
    payload: nullable(json<Record<string, unknown>>()),
    event: nullable(json<AgentEvent>()),
    from_seq: nullable(integer),
    candidates: nullable(integer),
  },
});

type Row = RowOf<typeof readPages>;

const isInside = (fromSeq: number | null, after: number): boolean => fromSeq !== null && fromSeq <= after;

function framesOf(runId: string, row: Row, frames: Frame<RunPosition>[]): void {
  const seq = row.seq ?? 0;
  if (row.event) {
    const event: LiveEvent = { type: 'conversation', event: { ...row.event, seq } };
    frames.push({ at: afterRow(seq), bytes: eventBytes(String(seq), event) });
    return;
  }
  const { event_uuid, occurred_at } = row;
  if (event_uuid === null || occurred_at === null) return;
  const events = [...eventsOfRow(runId, { ...row, event_uuid, occurred_at })];
  for (const [index, event] of events.entries()) {
    const isLast = index === events.length - 1;
    frames.push({ at: afterRow(seq) - (isLast ? 0 : 1), bytes: eventBytes(isLast ? `${seq}` : `${seq}.1`, event) });
  }
}

function pageOf({ runId, after }: RunQuestion, rows: readonly Row[], limit: number): Page<RunPosition> | 'gone' {
  const [first] = rows;
  const last = rows.at(-1);
  if (!first || !last) return 'gone';
  const frames: Frame<RunPosition>[] = [];
  for (const row of rows) if (row.seq !== null) framesOf(runId, row, frames);
  const isLast =
    last.seq === null || last.seq === last.event_seq || (rows.length === last.candidates && rows.length < limit);
  return {
    frames,
    // The last page reaches up to the highest row number of the run, even if retention has deleted the row with this number.
    upTo: afterRow(isLast ? first.event_seq : (last.seq ?? 0)),
    // If a stream has got only some of the events that were merged into this row, the others cannot be sent separately. So `keptAfter` is
    // this row, which cuts the stream.
    keptAfter: afterRow(isInside(first.from_seq, after) ? (first.seq ?? 0) : first.events_kept_after),
    isLast,
    hasEnded: isLast && isTerminal(first.run_state) && !first.is_debugged,
  };
}

/** Reads a page of at most `limit` rows for each question, all in one snapshot. */
export async function readRunPages(
  db: Queryable,
  questions: readonly RunQuestion[],
  limit: number,
): Promise<(Page<RunPosition> | 'gone')[]> {
  const rows = await db.query(readPages, [
    questions.map((question) => question.runId),
    questions.map((question) => question.after),
    limit,
  ]);
  const byQuestion = Map.groupBy(rows, (row) => row.n - 1);
  return questions.map((question, index) => pageOf(question, byQuestion.get(index) ?? [], limit));
}

const readPlace = defineStatement({
  name: 'read_live_place',
  text: `
    SELECT event_seq, events_kept_after,
      (SELECT c.from_seq FROM conversation_events c WHERE c.run_id = r.id AND c.seq > $3 ORDER BY c.seq LIMIT 1) AS next_from
    FROM runs r WHERE id = $1 AND team_id = $2`,
  row: { event_seq: integer, events_kept_after: integer, next_from: nullable(integer) },
});

/** Facts about a position in the events of a run: the last event, and the events that were deleted or merged there. */
export interface RunPlace {
  /** Number of the last row of the run's events. */
  readonly lastSeq: number;
  /** No event after this position was deleted. */
  readonly keptAfter: RunPosition;
  /** True: events after the requested position were merged with events before it. */
  readonly isInsideMerged: boolean;
}

/** Returns the facts about a position in the events of a run; null if the team has no such run. */
export async function findRunPlace(
  db: Queryable,
  run: { readonly teamId: string; readonly runId: string },
  position: RunPosition,
): Promise<RunPlace | null> {
  const after = rowOf(position);
  const [row] = await db.query(readPlace, [run.runId, run.teamId, after]);
  if (!row) return null;
  return {
    lastSeq: row.event_seq,
    keptAfter: afterRow(row.events_kept_after),
    isInsideMerged: isInside(row.next_from, after),
  };
}
