import { type Reading, reading } from '../../platform/metrics/gauges.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, float, nullable, texts, timestamp } from '../../platform/store/database/statement.ts';
import { type ScheduleRow, scheduleColumns, scheduleRow } from './schedule-row.ts';

/** Largest number of schedules that one transaction fires, and of teams to which they belong. */
export const batchSize = 200;

/** The columns of a schedule that a transaction has locked to fire it. */
export const claimedRow = { ...scheduleRow, next_run_at: timestamp, claimed_at: timestamp, listener_uids: texts };

/**
 * Returns the SQL that locks schedules that are due. `listeners`: SQL for the value of `listener_uids` of a schedule `s`. Teams share a batch equally, so that a team with very many due schedules does not delay the others.
 * If the process is killed, its connection ends, and so do the locks. The statement uses `now()`, because PostgreSQL cannot search an
 * index with the volatile function `clock_timestamp()`.
 */
export const claimDue = (listeners: string): string => `
    WITH team AS MATERIALIZED (
      SELECT t.id FROM teams t CROSS JOIN LATERAL (
        SELECT next_run_at FROM schedules WHERE team_id = t.id AND next_run_at <= now() ORDER BY next_run_at LIMIT 1
      ) first ORDER BY first.next_run_at LIMIT ${batchSize}
    )
    SELECT s.*, now() AS claimed_at, ${listeners} AS listener_uids FROM team CROSS JOIN LATERAL (
      SELECT ${scheduleColumns} FROM schedules s WHERE s.team_id = team.id AND s.next_run_at <= now()
      ORDER BY s.next_run_at LIMIT (SELECT ceil(${batchSize}.0 / count(*))::int FROM team) FOR UPDATE SKIP LOCKED
    ) s`;

/** Returns the SQL that locks the schedule $1 if it is due and no other process has locked it. */
export const claimOne = (listeners: string): string => `
    SELECT ${scheduleColumns}, now() AS claimed_at, ${listeners} AS listener_uids FROM schedules s
    WHERE s.id = $1 AND s.next_run_at <= now() FOR UPDATE SKIP LOCKED`;

/** A due schedule that the transaction has locked. */
export interface DueSchedule extends ScheduleRow {
  readonly next_run_at: string;
  /** When the transaction that locked the schedule began, by the clock of the database. */
  readonly claimed_at: string;
  /** UIDs of the enabled automations that name this schedule of the team in `schedule_ids`. */
  readonly listener_uids: readonly string[];
}

const readWait = defineStatement({
  name: 'read_wait_for_next_schedule',
  text: `
    SELECT extract(epoch FROM (SELECT next_run_at FROM schedules WHERE next_run_at IS NOT NULL ORDER BY next_run_at LIMIT 1)
      - clock_timestamp())::float8 * 1000 AS wait_ms`,
  row: { wait_ms: nullable(float) },
});

/**
 * Returns the milliseconds until the next schedule is due, by the clock of the database. Negative: a schedule is already due. Null: no
 * schedule has a next time.
 */
export async function waitForNext(db: Queryable): Promise<number | null> {
  return (await db.query(readWait))[0]?.wait_ms ?? null;
}

/** Reads the gauge of how many seconds the most overdue schedule is late. */
export async function measureOverdue(db: Queryable): Promise<Reading[]> {
  return [reading('runyard_schedules_overdue_seconds', {}, Math.max(0, -((await waitForNext(db)) ?? 0) / 1_000))];
}
