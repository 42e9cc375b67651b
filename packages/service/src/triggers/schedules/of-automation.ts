/**
 * Stores the schedules of automations in the table of schedules: one row for each schedule trigger. The same loop fires these schedules
 * and those of teams.
 */
import { randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import type { ScheduleOfRun } from '../../runs/runs/submit/new-run.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { keepStartsOfDeleted } from '../history/write.ts';
import { changedTimes, databaseClock, firstTime, type WantedTimes } from './first-time.ts';
import { type ScheduleRow, scheduleColumns, scheduleRow } from './schedule-row.ts';

const triggerRow = { ...scheduleRow, automation_uid: text(), trigger_name: text() };

/** A schedule of an automation. */
export type TriggerRow = ScheduleRow & { readonly automation_uid: string; readonly trigger_name: string };

const readAll = defineStatement({
  name: 'read_schedules_of_automations',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE s.automation_uid = ANY ($1::text[]) ORDER BY s.id`,
  row: triggerRow,
});

const lockAll = defineStatement({
  name: 'lock_schedules_of_automation',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE s.automation_uid = $1 ORDER BY s.id FOR UPDATE`,
  row: triggerRow,
});

const readNamed = defineStatement({
  name: 'read_schedule_of_waiting_start',
  text: 'SELECT id, name, cron_schedule, automation_uid FROM schedules WHERE id = $1',
  row: { id: uuid, name: text(), cron_schedule: text(), automation_uid: nullable(text()) },
});

const removeOthers = defineStatement({
  name: 'delete_other_schedules_of_automation',
  text: 'DELETE FROM schedules WHERE automation_uid = $1 AND trigger_name <> ALL ($2::text[]) RETURNING id',
  row: { id: uuid },
});

const write = defineStatement({
  name: 'write_schedule_of_automation',
  text: `
    INSERT INTO schedules AS s (id, team_id, automation_uid, trigger_name, name, cron_schedule, timezone, anchor_at, prompt, overlap,
      enabled, next_run_at, creator_kind, creator_uid, editor_kind, editor_uid)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', 'allow', $9::timestamptz IS NOT NULL, $9, $10, $11, $10, $11)
    ON CONFLICT (automation_uid, trigger_name) DO UPDATE SET name = excluded.name, cron_schedule = excluded.cron_schedule,
      timezone = excluded.timezone, anchor_at = excluded.anchor_at, enabled = excluded.enabled, next_run_at = excluded.next_run_at,
      editor_kind = excluded.editor_kind, editor_uid = excluded.editor_uid, spawn_failures = 0, last_spawn_error = NULL,
      updated_at = clock_timestamp()
    RETURNING s.id`,
  row: { id: uuid },
});

/** The automation that owns the schedules. The transaction has locked the automation. */
export interface AutomationOfSchedules {
  readonly uid: string;
  readonly teamId: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly editor: RunActor;
}

/** A schedule trigger. */
export interface WantedTrigger extends WantedTimes {
  /** Name that identifies the schedule in its automation; empty: the schedule has no name. */
  readonly trigger_name: string;
}

/**
 * Returns the schedule of a waiting start, in the form in which a run stores its schedule, and the automation that it belongs to. Returns
 * null if the schedule was deleted.
 */
export async function readScheduleOfStart(
  db: Queryable,
  scheduleId: string,
): Promise<{ readonly schedule: ScheduleOfRun; readonly automationUid: string | null } | null> {
  const [found] = await db.query(readNamed, [scheduleId]);
  if (!found) return null;
  const { id, name, cron_schedule: cronSchedule, automation_uid: automationUid } = found;
  return { schedule: { id, name, cronSchedule }, automationUid };
}

/** Returns the schedules of these automations, oldest first. */
export const readSchedulesOfAutomations = (db: Queryable, automationUids: readonly string[]): Promise<TriggerRow[]> =>
  db.query(readAll, [automationUids]);

/**
 * Stores a schedule for each schedule trigger of an automation, and deletes its other schedules with their history. If a trigger has
 * the name of a stored schedule, the schedule keeps its next time, unless the expression, the time zone or `enabled` has changed.
 */
export async function setSchedulesOfAutomation(
  tx: Queryable,
  { uid, teamId, name, enabled, editor }: AutomationOfSchedules,
  wanted: readonly WantedTrigger[],
): Promise<void> {
  const stored = new Map((await tx.query(lockAll, [uid])).map((row) => [row.trigger_name, row]));
  if (stored.size === 0 && wanted.length === 0) return;
  const names = wanted.map(({ trigger_name }) => trigger_name);
  const others = [...stored.values()].filter((row) => !names.includes(row.trigger_name));
  await keepStartsOfDeleted(
    tx,
    others.map(({ id }) => id),
  );
  await tx.query(removeOthers, [uid, names]);
  const now = await databaseClock(tx);
  for (const times of wanted) {
    const present = stored.get(times.trigger_name);
    const fresh = () => (enabled ? firstTime({ ...times, anchor_at: now, last_due_at: null }, now) : null);
    const { anchorAt, nextRunAt } = present
      ? changedTimes(present, times, enabled, now)
      : { anchorAt: now, nextRunAt: fresh() };
    await tx.query(write, [
      present?.id ?? randomUUIDv7(),
      teamId,
      uid,
      times.trigger_name,
      times.trigger_name || name,
      times.cron_schedule,
      times.timezone,
      anchorAt,
      nextRunAt,
      editor.kind,
      editor.uid,
    ]);
  }
}
