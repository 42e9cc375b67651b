/** The timeline events of all runs in one order, read from the table and made frames. */
import type { TeamLiveEvent } from '@runyard/contract/live-events';
import type { Queryable, Statement } from '../store/database/database.ts';
import type { Page } from './feed.ts';
import { eventBytes, type Frame } from './frame.ts';
import { afterRow, eventsOfRow, type TimelineRow } from './run-events.ts';
import { beforeTransaction, rowOfTeamPosition, type TeamPosition, teamIdOf } from './team-position.ts';

/** Rows of a page. */
const pageRows = 200;

/**
 * The first transaction that may still write: all before it have ended, so no event can appear among theirs any more.
 * Transaction numbers are the cluster's: those of other databases ($1) write no events here.
 */
const horizon = `
  SELECT coalesce(
    (SELECT x FROM pg_snapshot_xip(s) AS x WHERE x::text::bigint <> ALL ($1::bigint[]) ORDER BY x LIMIT 1),
    pg_snapshot_xmax(s)) AS xact
  FROM pg_current_snapshot() AS s`;

const readEvents: Statement = {
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
};

interface Row extends Omit<TimelineRow, 'event_uuid'> {
  horizon: number;
  is_held_back: boolean;
  xact: number | null;
  run_id: string;
  seq: number;
  team_id: string | null;
  event_uuid: string;
}

/** What was read for all teams at once. */
export interface TeamNews {
  readonly byTeam: ReadonlyMap<string, readonly Frame<TeamPosition>[]>;
  readonly upTo: TeamPosition;
  readonly isLast: boolean;
  /** Events were written that cannot be read before an older transaction has ended. */
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

/** A page of the events of all runs behind `after`. `foreign`: transactions of other databases. */
export async function readTeamNews(
  db: Queryable,
  epoch: string,
  after: TeamPosition,
  foreign: readonly number[],
): Promise<TeamNews> {
  const { xact, runId, seq } = rowOfTeamPosition(after);
  const rows = await db.query<Row>(readEvents, [foreign, xact, runId, seq]);
  const byTeam = new Map<string, Frame<TeamPosition>[]>();
  let last: TeamPosition = after;
  let count = 0;
  for (const row of rows) {
    if (row.xact === null) continue;
    count += 1;
    last = { xact: row.xact, runId: row.run_id, place: afterRow(row.seq) };
    // Deleted in this moment.
    if (row.team_id === null) continue;
    const frames = byTeam.get(row.team_id) ?? [];
    frames.push(...framesOf(epoch, row, row.xact));
    byTeam.set(row.team_id, frames);
  }
  const isLast = count < pageRows;
  const [first] = rows;
  return {
    byTeam,
    // Another process may have known more foreign transactions, and been further already.
    upTo: isLast && first && first.horizon > last.xact ? beforeTransaction(first.horizon) : last,
    isLast,
    isHeldBack: first?.is_held_back ?? false,
  };
}

/** One team's part of what was read. */
export const pageOfTeam = (news: TeamNews, teamId: string): Page<TeamPosition> => ({
  frames: news.byTeam.get(teamId) ?? [],
  upTo: news.upTo,
  keptAfter: beforeTransaction(0),
  isLast: news.isLast,
  hasEnded: false,
});

const readPlace: Statement = {
  name: 'read_team_place',
  text: `
    SELECT (SELECT xact FROM (${horizon}) h)::text::bigint AS horizon, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
      coalesce((SELECT xact FROM event_stream_marks WHERE marked_at < now() - interval '7 days' ORDER BY marked_at DESC LIMIT 1), '0')::text::bigint AS kept_after`,
};

/** Where "now" is, the number that the next transaction gets, and before which transaction ids are too old. */
export async function readTeamPlace(
  db: Queryable,
  foreign: readonly number[],
): Promise<{ readonly horizon: number; readonly next: number; readonly keptAfter: number }> {
  const [row] = await db.query<{ horizon: number; next: number; kept_after: number }>(readPlace, [foreign]);
  if (!row) throw new Error('the place of the team stream cannot be read');
  return { horizon: row.horizon, next: row.next, keptAfter: row.kept_after };
}

/**
 * Transactions that write in other databases of the cluster now. Whether one does never changes, so that the answer may
 * be older than what it is used for. Locks have the lower 32 bits of a number: it is the one that is nearest to the next.
 */
export async function readForeignTransactions(db: Queryable): Promise<number[]> {
  const rows = await db.query<{ xact: number }>(`
    SELECT next - (next - l.transactionid::text::bigint) % 4294967296 AS xact
    FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 2147483648 AS next) s,
      pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND a.datname <> current_database()`);
  return rows.map((row) => row.xact);
}
