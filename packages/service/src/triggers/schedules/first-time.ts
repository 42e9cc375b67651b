import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, timestamp } from '../../platform/store/database/statement.ts';
import { type ScheduleRow, timesOf } from './schedule-row.ts';
import { nextTime } from './times/next-time.ts';

const readClock = defineStatement({
  name: 'read_clock_for_schedules',
  text: 'SELECT clock_timestamp() AS now',
  row: { now: timestamp },
});

/** Returns the present time of the database's clock, in RFC 3339. */
export async function databaseClock(db: Queryable): Promise<string> {
  const [row] = await db.query(readClock);
  if (!row) throw new Error('the query for the time of the database returned no row');
  return row.now;
}

type Timed = Pick<ScheduleRow, 'cron_schedule' | 'timezone' | 'anchor_at' | 'last_due_at'>;

/**
 * Returns the next time at which a schedule fires: the first one after `now` and after `last_due_at`, the last time at which it fired. So no
 * time fires twice if the clock is set back.
 */
export function firstTime(schedule: Timed, now: string): string | null {
  const after = Math.max(Date.parse(now), schedule.last_due_at === null ? 0 : Date.parse(schedule.last_due_at));
  const next = nextTime(timesOf(schedule), after);
  return next === null ? null : new Date(next).toISOString();
}

type Stored = Timed & Pick<ScheduleRow, 'enabled' | 'next_run_at'>;

/** The wanted expression and time zone of a schedule. */
export type WantedTimes = Pick<ScheduleRow, 'cron_schedule' | 'timezone'>;

/**
 * Returns the anchor and the next time of a schedule after a change. The next time stays the same unless the expression, the time zone
 * or `enabled` has changed. The next time is null if the schedule is disabled.
 */
export function changedTimes(
  stored: Stored,
  wanted: WantedTimes,
  enabled: boolean,
  now: string,
): { readonly anchorAt: string; readonly nextRunAt: string | null } {
  const sameTimes = wanted.cron_schedule === stored.cron_schedule && wanted.timezone === stored.timezone;
  const anchorAt = sameTimes ? stored.anchor_at : now;
  if (!enabled) return { anchorAt, nextRunAt: null };
  const keepsTime = sameTimes && stored.enabled;
  return {
    anchorAt,
    nextRunAt: keepsTime ? stored.next_run_at : firstTime({ ...stored, ...wanted, anchor_at: anchorAt }, now),
  };
}
