/** Updates the row of a schedule after one of its times has fired: the next time, and the number of failures. */
import type { FireOutcome } from '@runyard/contract/schedules/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, text, timestamp, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';

/** Failed starts in a row after which a schedule or an automation is paused. */
export const maxSpawnFailures = 10;
/** Runs in a row that failed after which a schedule or an automation is paused. */
export const maxFailedRuns = 10;
/** If a schedule or automation is paused because of failures, its error begins with this text. The reason of the last failure follows. */
export const pausedBecause = `Paused after ${maxSpawnFailures} failures in a row. The last one:`;

/** A time of a schedule that has fired. */
export interface FiredTime {
  readonly scheduleId: string;
  /** The time that has fired. It is the value of `next_run_at` when the schedule was locked. */
  readonly dueAt: string;
  /** Null: there is no next time. */
  readonly nextRunAt: string | null;
  readonly outcome: FireOutcome;
  readonly reason?: string | undefined;
  /** 1: the outcome is a failure that counts towards `maxSpawnFailures`; 0: it does not count. */
  readonly failures: number;
}

/**
 * Returns SQL that sets the next times of schedules, and returns the id of each schedule and whether it is still enabled. `rows` names
 * the SQL parameter with the value of `timesParameter`. The SQL skips a schedule whose next time has changed since this process locked
 * it.
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

/** Returns the value of the SQL parameter that `moveTimes` reads. */
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
    WHERE s.id = n.id AND s.automation_uid IS NOT DISTINCT FROM $4 RETURNING s.enabled`,
  row: { enabled: boolean },
});

/**
 * Records the outcome of a start that waited, unless the schedule is not `automationUid`'s: an automation that only names the schedule of
 * the team changes nothing in it. `failure`: why no run was created, and whether this is one of the failures that pause the
 * schedule; null if a run was created.
 * Returns whether this has paused the schedule.
 */
export async function recordLaterStart(
  tx: Queryable,
  { scheduleId, automationUid }: { readonly scheduleId: string; readonly automationUid: string | null },
  failure: { readonly reason: string; readonly counts: boolean } | null,
): Promise<boolean> {
  const values = [scheduleId, failure?.reason ?? null, failure?.counts ? 1 : 0, automationUid];
  const [row] = await tx.query(recordLater, values);
  return row?.enabled === false;
}

const noteRan = defineStatement({
  name: 'note_run_of_schedule',
  text: 'UPDATE schedules SET last_ran_at = clock_timestamp() WHERE id = $1 RETURNING id',
  row: { id: uuid },
});

/** Stores the present time as the time at which the schedule last created a run. */
export async function recordRan(tx: Queryable, scheduleId: string): Promise<void> {
  await tx.query(noteRan, [scheduleId]);
}

const lockFailing = defineStatement({
  name: 'lock_schedule_with_failed_run',
  text: `
    SELECT name, enabled, executor_kind, executor_uid, updated_at FROM schedules
    WHERE id = $2 AND team_id = $1 AND automation_uid IS NULL FOR UPDATE`,
  row: {
    name: text(),
    enabled: boolean,
    executor_kind: text<RunActor['kind']>(),
    executor_uid: text(),
    updated_at: timestamp,
  },
});

/** Locks a schedule of the team of which a run failed; null if there is none. */
export const lockFailingSchedule = async (tx: Queryable, teamId: string, id: string) =>
  (await tx.query(lockFailing, [teamId, id]))[0] ?? null;

const pause = defineStatement({
  name: 'pause_schedule_after_failed_runs',
  text: 'UPDATE schedules SET enabled = false, next_run_at = NULL, last_spawn_error = $2 WHERE id = $1',
  row: {},
});

/** Pauses a schedule, because its runs always fail. The transaction has locked it. */
export async function pauseAfterFailures(tx: Queryable, id: string, reason: string): Promise<void> {
  await tx.query(pause, [id, reason]);
}
