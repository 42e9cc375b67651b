/** Changes that fires make in the row of a schedule: its next time, and the count of its failures. */
import type { FireOutcome } from '@runyard/contract/schedules/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../platform/store/database/statement.ts';

/** Failed starts in a row after which a schedule or an automation is paused. */
export const maxSpawnFailures = 10;
/** Beginning of the error of a schedule or automation that was paused because of failures; the last failure follows. */
export const pausedBecause = `Paused after ${maxSpawnFailures} failures in a row. The last one:`;

/** A time of a schedule that has fired. */
export interface FiredTime {
  readonly scheduleId: string;
  /** The time that fires, as the claim read it. */
  readonly dueAt: string;
  /** Null: there is no next time. */
  readonly nextRunAt: string | null;
  readonly outcome: FireOutcome;
  readonly reason?: string | undefined;
  /** Failures that count towards the pause: 0 or 1. */
  readonly failures: number;
}

/**
 * Returns the SQL that sets the next times of schedules and returns their ids and whether they are enabled. The argument names the
 * parameter that `timesParameter` returns. The SQL skips a schedule whose next time was changed after the claim.
 */
export const moveTimes = (rows: string): string => `
      UPDATE schedules s SET
        last_due_at = i.due_at,
        enabled = paused.because IS NULL,
        next_run_at = CASE WHEN paused.because IS NULL THEN i.next_run_at END,
        last_ran_at = CASE WHEN i.outcome = 'started' THEN clock_timestamp() ELSE s.last_ran_at END,
        last_spawn_error = CASE i.outcome WHEN 'started' THEN paused.because WHEN 'failed' THEN concat_ws(' ', paused.because, i.reason)
          ELSE coalesce(paused.because, s.last_spawn_error) END,
        spawn_failures = CASE WHEN i.outcome = 'started' THEN 0 ELSE s.spawn_failures + i.failures END
      FROM jsonb_to_recordset(${rows}::jsonb) AS i(schedule_id uuid, due_at timestamptz, next_run_at timestamptz, outcome text, reason text,
        failures integer), LATERAL (
        SELECT CASE
          WHEN i.next_run_at IS NULL THEN 'Paused: the expression gives no further time.'
          WHEN i.outcome = 'failed' AND (SELECT spawn_failures FROM schedules WHERE id = i.schedule_id) + i.failures >= ${maxSpawnFailures}
            THEN '${pausedBecause}' END AS because
      ) paused
      WHERE s.id = i.schedule_id AND s.next_run_at = i.due_at
      RETURNING s.id, s.enabled`;

/** Returns the parameter of `moveTimes`. */
export const timesParameter = (fired: readonly FiredTime[]): string =>
  JSON.stringify(
    fired.map(({ scheduleId, dueAt, nextRunAt, outcome, reason, failures }) => ({
      schedule_id: scheduleId,
      due_at: dueAt,
      next_run_at: nextRunAt,
      outcome,
      reason,
      failures,
    })),
  );

const recordLater = defineStatement({
  name: 'record_later_start_of_schedule',
  text: `
    UPDATE schedules s SET
      last_ran_at = CASE WHEN $2::text IS NULL THEN clock_timestamp() ELSE s.last_ran_at END,
      last_spawn_error = CASE WHEN n.failures >= ${maxSpawnFailures} THEN '${pausedBecause} ' || $2 ELSE $2 END,
      spawn_failures = n.failures,
      enabled = s.enabled AND n.failures < ${maxSpawnFailures},
      next_run_at = CASE WHEN n.failures < ${maxSpawnFailures} THEN s.next_run_at END
    FROM (SELECT id, CASE WHEN $2::text IS NULL THEN 0 ELSE spawn_failures + $3::int END AS failures FROM schedules WHERE id = $1) n
    WHERE s.id = n.id RETURNING s.enabled`,
  row: { enabled: boolean },
});

/**
 * Counts a start that waited. `failure`: why there is no run, and whether this counts as a failure; null if the run was created.
 * Returns whether the schedule is still enabled.
 */
export async function recordLaterStart(
  tx: Queryable,
  scheduleId: string,
  failure: { readonly reason: string; readonly counts: boolean } | null,
): Promise<boolean> {
  const [row] = await tx.query(recordLater, [scheduleId, failure?.reason ?? null, failure?.counts ? 1 : 0]);
  return row?.enabled ?? false;
}

const noteRan = defineStatement({
  name: 'note_run_of_schedule',
  text: 'UPDATE schedules SET last_ran_at = clock_timestamp() WHERE id = $1 RETURNING id',
  row: { id: uuid },
});

/** Notes that a run of the schedule was created now. */
export async function recordRan(tx: Queryable, scheduleId: string): Promise<void> {
  await tx.query(noteRan, [scheduleId]);
}
