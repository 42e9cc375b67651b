/** The events of runs, read from the tables and made frames. */
import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { LiveEvent } from '@runyard/contract/live-events';
import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import type { TimelineEventType } from '@runyard/contract/timeline';
import type { Queryable, Statement } from '../store/database/database.ts';
import type { Page } from './feed.ts';
import { eventBytes, type Frame } from './frame.ts';

/**
 * Twice the number of the last row that was given; less one: of that row the first of its two events was given, its
 * place in the timeline, and not the second, the state.
 */
export type RunPosition = number;

/** The id of a stream's event, `7` or, for the first of two events of a row, `7.1`. */
const runId = /^(\d{1,15})(\.1)?$/;

/** Null: no id of a run's stream. */
export function parseRunPosition(id: string): RunPosition | null {
  const match = runId.exec(id);
  if (!match) return null;
  const position = Number(match[1]) * 2 - (match[2] ? 1 : 0);
  return position >= 0 ? position : null;
}

/** Columns of a row of `run_events` that its events are made of. */
export interface TimelineRow {
  event_uuid: string;
  event_type: TimelineEventType | null;
  state: RunState | null;
  occurred_at: string;
  execution_number: number | null;
  payload: Record<string, unknown> | null;
}

/** One or two events: the place in the timeline, then the state. */
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

/** Number of the last row that was given whole. */
export const rowOf = (position: RunPosition): number => Math.floor(position / 2);

/** Where a stream is that was given everything up to this row. */
export const afterRow = (seq: number): RunPosition => seq * 2;

/** A question for the events of a run. */
interface RunQuestion {
  readonly runId: string;
  /** Number of the row behind which it is read. */
  readonly after: number;
}

/** Bytes of a page, as PostgreSQL stores them: more than these only by one event. */
const maxPageBytes = 256 * 1024;

/** $3 rows at most for each run. A row without `seq`: there is nothing behind `after`; no row: the run is gone. */
const readPages: Statement = {
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
};

interface Row extends Omit<TimelineRow, 'event_uuid'> {
  n: number;
  run_state: RunState;
  /** A turn goes on in the sandbox of its failed setup. */
  is_debugged: boolean;
  event_seq: number;
  events_kept_after: number;
  seq: number | null;
  candidates: number;
  event_uuid: string | null;
  event: AgentEvent | null;
  from_seq: number | null;
}

const isInside = (fromSeq: number | null, after: number): boolean => fromSeq !== null && fromSeq <= after;

function framesOf(runId: string, row: Row, frames: Frame<RunPosition>[]): void {
  const seq = row.seq ?? 0;
  if (row.event) {
    const event: LiveEvent = { type: 'conversation', event: { ...row.event, seq } };
    frames.push({ at: afterRow(seq), bytes: eventBytes(String(seq), event) });
    return;
  }
  const { event_uuid } = row;
  if (event_uuid === null) return;
  const events = [...eventsOfRow(runId, { ...row, event_uuid })];
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
    // Behind the last row nothing was there, though numbers may have been: retention has deleted them.
    upTo: afterRow(isLast ? first.event_seq : (last.seq ?? 0)),
    // Of events that were merged, whoever has some cannot have the others.
    keptAfter: afterRow(isInside(first.from_seq, after) ? (first.seq ?? 0) : first.events_kept_after),
    isLast,
    hasEnded: isLast && isTerminal(first.run_state) && !first.is_debugged,
  };
}

/** A page of at most `limit` rows for each question, all as of one moment. */
export async function readRunPages(
  db: Queryable,
  questions: readonly RunQuestion[],
  limit: number,
): Promise<(Page<RunPosition> | 'gone')[]> {
  const rows = await db.query<Row>(readPages, [
    questions.map((question) => question.runId),
    questions.map((question) => question.after),
    limit,
  ]);
  const byQuestion = Map.groupBy(rows, (row) => row.n - 1);
  return questions.map((question, index) => pageOf(question, byQuestion.get(index) ?? [], limit));
}

const readPlace: Statement = {
  name: 'read_live_place',
  text: `
    SELECT event_seq, events_kept_after,
      (SELECT c.from_seq FROM conversation_events c WHERE c.run_id = r.id AND c.seq > $3 ORDER BY c.seq LIMIT 1) AS next_from
    FROM runs r WHERE id = $1 AND team_id = $2`,
};

/** The run, and a position in it. */
export interface RunPlace {
  /** Number of its last row. */
  readonly lastSeq: number;
  /** Events behind this position are all kept. */
  readonly keptAfter: RunPosition;
  /** Events behind the position were merged with some before it. */
  readonly isInsideMerged: boolean;
}

/** Null: the team has no such run. */
export async function findRunPlace(
  db: Queryable,
  run: { readonly teamId: string; readonly runId: string },
  position: RunPosition,
): Promise<RunPlace | null> {
  const after = rowOf(position);
  const [row] = await db.query<{ event_seq: number; events_kept_after: number; next_from: number | null }>(readPlace, [
    run.runId,
    run.teamId,
    after,
  ]);
  if (!row) return null;
  return {
    lastSeq: row.event_seq,
    keptAfter: afterRow(row.events_kept_after),
    isInsideMerged: isInside(row.next_from, after),
  };
}
