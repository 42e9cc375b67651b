/** Reads the timeline events of all runs in one order and turns them into frames. */
import type { TeamLiveEvent } from '@runyard/contract/runs/live-events';
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
import type { Notices } from '../../runs/executions/notices.ts';
import type { Page } from './feed.ts';
import { eventBytes, type Frame } from './frame.ts';
import { afterRow, eventsOfRow } from './run-events.ts';
import { beforeTransaction, rowOfTeamPosition, type TeamPosition, teamIdOf } from './team-position.ts';

export const pageRows = 200;

/**
 * The first transaction that may still write. All earlier transactions have ended, so their events are complete. Transaction numbers are
 * counted for the whole cluster; transactions of other databases ($1) are ignored, because they write no events of this database.
 */
export const horizon = `
  SELECT coalesce(
    (SELECT x FROM pg_snapshot_xip(s) AS x WHERE x::text::bigint <> ALL ($1::bigint[]) ORDER BY x LIMIT 1),
    pg_snapshot_xmax(s)) AS xact
  FROM pg_current_snapshot() AS s`;

const readEvents = defineStatement({
  name: 'read_team_events',
  text: `
    WITH horizon AS MATERIALIZED (${horizon})
    SELECT h.xact::text::bigint AS horizon,
      EXISTS (SELECT FROM run_events e WHERE e.xact > '0' AND e.xact >= (SELECT xact FROM horizon)) AS is_held_back, v.*
    FROM horizon h LEFT JOIN (
      SELECT e.xact::text::bigint AS xact, e.run_id, e.seq, e.event_uuid, e.event_type, e.state, e.occurred_at, e.execution_number,
        e.payload, (SELECT team_id FROM runs WHERE id = e.run_id) AS team_id
      FROM run_events e
      WHERE e.xact > '0' AND e.xact >= $2::xid8 AND e.xact < (SELECT xact FROM horizon) AND (e.xact, e.run_id, e.seq) > ($2::xid8, $3::uuid, $4::bigint)
      ORDER BY e.xact, e.run_id, e.seq LIMIT ${pageRows}
    ) v ON true
    ORDER BY v.xact, v.run_id, v.seq`,
  // If there is no event, all columns of `v` are NULL, also those that are declared as not nullable. So the code skips a row whose `xact` is NULL.
  row: {
    horizon: integer,
    is_held_back: boolean,
    xact: nullable(integer),
    run_id: uuid,
    seq: integer,
    event_uuid: uuid,
    event_type: nullable(text<TimelineEventType>()),
    state: nullable(text<RunState>()),
    occurred_at: timestamp,
    execution_number: nullable(integer),
    payload: nullable(json<Record<string, unknown>>()),
    /** NULL if the run was deleted a moment ago. */
    team_id: nullable(uuid),
  },
});

type Row = RowOf<typeof readEvents>;

/** The source of the events that the streams of teams send: the events of runs, or the deliveries to webhooks. */
export interface TeamSource {
  /** Reads the events of all teams that follow the position `after`, at most one page. `foreign`: transactions of other databases. */
  read(db: Queryable, epoch: string, after: TeamPosition, foreign: readonly number[]): Promise<TeamNews>;
  /** Calls `onNews` when there may be new events. `areLost`: notices may have been lost. Returns the function that ends the subscription. */
  subscribe(onNews: (areLost: boolean) => void): () => void;
}

/** The timeline events of runs. */
export const eventsOfRuns = (notices: Notices): TeamSource => ({
  read: readTeamNews,
  subscribe: (onNews) => {
    // Also listen to the channel of the queue, because a new run sends a notice only there.
    const stops = [notices.onAnyRun((runId) => onNews(runId === null)), notices.onQueue(() => onNews(false))];
    return () => {
      for (const stop of stops) stop();
    };
  },
});

/** The result of one read for all teams. */
export interface TeamNews {
  readonly byTeam: ReadonlyMap<string, readonly Frame<TeamPosition>[]>;
  readonly upTo: TeamPosition;
  readonly isLast: boolean;
  /** True: further events exist, but they can be read only when an older transaction has ended. */
  readonly isHeldBack: boolean;
}

function framesOf(epoch: string, row: Row, xact: number): Frame<TeamPosition>[] {
  const events = [...eventsOfRow(row.run_id, row)];
  return events.map((event, index) => {
    const at = { xact, runId: row.run_id, place: afterRow(row.seq) - (events.length - 1 - index) };
    const withRun: TeamLiveEvent = { ...event, run_id: row.run_id };
    return { at, bytes: eventBytes(teamIdOf(epoch, at), withRun) };
  });
}

const readTeamNews: TeamSource['read'] = async (db, epoch, after, foreign) => {
  const { xact, runId, seq } = rowOfTeamPosition(after);
  return newsOf(after, await db.query(readEvents, [foreign, xact, runId, seq]), (row, xact) => ({
    at: { xact, runId: row.run_id, place: afterRow(row.seq) },
    teamId: row.team_id,
    frames: () => framesOf(epoch, row, xact),
  }));
};

/** The frames that streams of a team send for one row. `at`: the position after the row. */
interface SentRow {
  readonly at: TeamPosition;
  /** Null: nothing is sent, because the object of the row was deleted a moment ago. */
  readonly teamId: string | null;
  readonly frames: () => readonly Frame<TeamPosition>[];
}

/** Returns the news of the rows that were read after a position. If there is no event, there is one row, whose `xact` is null. */
export function newsOf<Row extends { horizon: number; is_held_back: boolean; xact: number | null }>(
  after: TeamPosition,
  rows: readonly Row[],
  sentOf: (row: Row, xact: number) => SentRow,
): TeamNews {
  const byTeam = new Map<string, Frame<TeamPosition>[]>();
  let last: TeamPosition = after;
  let count = 0;
  for (const row of rows) {
    if (row.xact === null) continue;
    count += 1;
    const { at, teamId, frames } = sentOf(row, row.xact);
    last = at;
    if (teamId === null) continue;
    const ofTeam = byTeam.get(teamId) ?? [];
    ofTeam.push(...frames());
    byTeam.set(teamId, ofTeam);
  }
  const isLast = count < pageRows;
  const [first] = rows;
  return {
    byTeam,
    // Do not return a position before `after`, even if the horizon is earlier than `after`. Another process may have made `after`, and may
    // have read further because it knew more transactions of other databases.
    upTo: isLast && first && first.horizon > last.xact ? beforeTransaction(first.horizon) : last,
    isLast,
    isHeldBack: first?.is_held_back ?? false,
  };
}

/** Returns the page for the streams of one team, which has only the events of this team. */
export const pageOfTeam = (news: TeamNews, teamId: string): Page<TeamPosition> => ({
  frames: news.byTeam.get(teamId) ?? [],
  upTo: news.upTo,
  keptAfter: beforeTransaction(0),
  isLast: news.isLast,
  hasEnded: false,
});

const readPlace = defineStatement({
  name: 'read_team_place',
  text: `
    SELECT (SELECT xact FROM (${horizon}) h)::text::bigint AS horizon, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
      coalesce((SELECT xact FROM event_stream_marks WHERE marked_at < now() - interval '7 days' ORDER BY marked_at DESC LIMIT 1), '0')::text::bigint AS kept_after`,
  row: { horizon: integer, next: integer, kept_after: integer },
});

/** Reads the current position, the number of the next transaction, and the transaction before which ids are too old. */
export async function readTeamPlace(
  db: Queryable,
  foreign: readonly number[],
): Promise<{ readonly horizon: number; readonly next: number; readonly keptAfter: number }> {
  const [row] = await db.query(readPlace, [foreign]);
  if (!row) throw new Error('the position of the team stream cannot be read');
  return { horizon: row.horizon, next: row.next, keptAfter: row.kept_after };
}

/** Locks show the lower 32 bits of a transaction number. The full number is the one nearest to the next transaction. */
const readForeign = defineStatement({
  name: 'read_foreign_transactions',
  text: `
    SELECT next - (next - l.transactionid::text::bigint) % 4294967296 AS xact
    FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 2147483648 AS next) s,
      pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND a.datname <> current_database()`,
  row: { xact: integer },
});

/**
 * Reads the transactions that write in other databases of the cluster now. A transaction never changes its database, so a caller may use an
 * older answer again.
 */
export async function readForeignTransactions(db: Queryable): Promise<number[]> {
  const rows = await db.query(readForeign);
  return rows.map((row) => row.xact);
}
