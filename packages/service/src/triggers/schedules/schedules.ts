import { randomUUIDv7 } from 'node:crypto';
import { maxSchedules } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { decideOwnership, maySee, type Owner, requireMaker } from '../../team/access/ownership.ts';
import { teamHasRoom } from '../../team/access/teams/has-room.ts';
import { keepStartsOfDeleted, skipWaitingStarts } from '../history/write.ts';
import type { WantedSchedule } from './check.ts';
import { changedTimes, databaseClock, firstTime } from './first-time.ts';
import { ownerOfSchedule, type ScheduleRow, scheduleColumns, scheduleRow } from './schedule-row.ts';

/** SQL condition: the schedule belongs to the team and to no automation. The routes of schedules do not show or change schedules of automations. */
const ofTeam = 's.team_id = $1 AND s.automation_uid IS NULL';

const readAll = defineStatement({
  name: 'read_schedules_of_team',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE ${ofTeam} ORDER BY s.name COLLATE "C", s.id`,
  row: scheduleRow,
});

const readOne = defineStatement({
  name: 'read_schedule',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE ${ofTeam} AND s.id = $2`,
  row: scheduleRow,
});

const lockOne = defineStatement({
  name: 'lock_schedule',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE ${ofTeam} AND s.id = $2 FOR UPDATE`,
  row: scheduleRow,
});

const insert = defineStatement({
  name: 'insert_schedule',
  text: `
    INSERT INTO schedules AS s (id, team_id, user_uid, name, cron_schedule, timezone, anchor_at, prompt, agent_config, agent_uid, mode, metadata,
      overlap, max_live_runs, enabled, next_run_at, creator_kind, creator_uid, editor_kind, editor_uid,
      executor_kind, executor_uid)
    VALUES ($1, $2, $18, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $16, $17, $19, $20) RETURNING ${scheduleColumns}`,
  row: scheduleRow,
});

const update = defineStatement({
  name: 'update_schedule',
  text: `
    UPDATE schedules s SET name = $2, cron_schedule = $3, timezone = $4, anchor_at = $5, prompt = $6, agent_config = $7,
      agent_uid = $8, mode = $9, metadata = $10, overlap = $11, max_live_runs = $12, enabled = $13, next_run_at = $14,
      editor_kind = $15, editor_uid = $16, executor_kind = $17, executor_uid = $18, spawn_failures = 0, last_spawn_error = NULL, updated_at = clock_timestamp()
    WHERE s.id = $1 RETURNING ${scheduleColumns}`,
  row: scheduleRow,
});

/** Pauses or resumes a schedule. Resuming resets the number of failures to 0. */
const setEnabled = defineStatement({
  name: 'set_schedule_enabled',
  text: `
    UPDATE schedules s SET enabled = $2, next_run_at = $3, updated_at = clock_timestamp(),
      spawn_failures = CASE WHEN $2 THEN 0 ELSE s.spawn_failures END,
      last_spawn_error = CASE WHEN $2 THEN NULL ELSE s.last_spawn_error END
    WHERE s.id = $1 RETURNING ${scheduleColumns}`,
  row: scheduleRow,
});

const remove = defineStatement({
  name: 'delete_schedule',
  text: 'DELETE FROM schedules WHERE id = $1 RETURNING id',
  row: { id: uuid },
});

const readOfTeam = defineStatement({
  name: 'read_schedules_of_team_by_id',
  text: `SELECT s.id, s.enabled FROM schedules s WHERE ${ofTeam} AND s.user_uid IS NULL AND s.id::text = ANY ($2::text[])`,
  row: { id: uuid, enabled: boolean },
});

/** Returns which of the ids, which may be any texts, name schedules of the team. Personal schedules are left out. */
export const readTeamSchedules = (db: Queryable, teamId: string, ids: readonly string[]) =>
  db.query(readOfTeam, [teamId, ids]);

/** Returns the schedules of the team that the caller may see, sorted by name. */
export async function listSchedules(db: Queryable, caller: Principal): Promise<ScheduleRow[]> {
  const rows = await db.query(readAll, [caller.teamId]);
  return rows.filter((row) => maySee(caller, ownerOfSchedule(row)));
}

/** Returns a schedule; null if the team has no schedule with this id that the caller may see. */
export async function readSchedule(db: Queryable, caller: Principal, id: string): Promise<ScheduleRow | null> {
  const [row] = await db.query(readOne, [caller.teamId, id]);
  return row && maySee(caller, ownerOfSchedule(row)) ? row : null;
}

/**
 * Locks a schedule until the transaction ends, and returns it. Returns null if the team has no such schedule, or the caller may not do
 * `action` with it. Throws `MadeByPerson` if an agent wants to change or delete a schedule that a person made.
 */
export async function lockSchedule(
  tx: Queryable,
  caller: Principal,
  id: string,
  action: 'use' | 'change' | 'delete',
): Promise<ScheduleRow | null> {
  const [row] = await tx.query(lockOne, [caller.teamId, id]);
  if (!row || decideOwnership(caller, ownerOfSchedule(row), action) !== 'allowed') return null;
  if (action !== 'use') requireMaker(caller, row.creator_kind);
  return row;
}

/**
 * Returns the members of a schedule that the audit log shows. The audit log shows only the length of a prompt, because people write
 * secrets into prompts.
 */
const stateOf = ({
  name,
  cron_schedule,
  timezone,
  agent_uid,
  overlap,
  max_live_runs,
  enabled,
  ...row
}: ScheduleRow) => ({
  name,
  cron_schedule,
  timezone,
  agent_uid,
  overlap,
  max_live_runs,
  enabled,
  editor: row.editor_uid,
  executor: row.executor_uid,
  prompt: `${row.prompt.length} characters`,
  environment_id: row.agent_config?.environment_id ?? null,
});

const subjectOf = ({ id, name }: ScheduleRow) => ({ type: 'schedule', uid: id, name });

/** Returns the values of a request that the statements store, in their order. */
const requestValues = (wanted: WantedSchedule) => [
  wanted.prompt,
  wanted.agent_config && JSON.stringify(wanted.agent_config),
  wanted.agent_uid,
  wanted.mode,
  JSON.stringify(wanted.metadata),
  wanted.overlap,
  wanted.max_live_runs,
];

/** Creates a schedule. `too_many`: the team already has the largest number of schedules that is allowed. */
export async function createSchedule(
  tx: Queryable,
  by: Author,
  owner: Owner,
  wanted: WantedSchedule,
  enabled: boolean,
  executor: RunActor,
): Promise<ScheduleRow | 'too_many'> {
  const { teamId, creator } = by;
  if (!(await teamHasRoom(tx, by, 'schedules', maxSchedules))) return 'too_many';
  const now = await databaseClock(tx);
  const nextRunAt = enabled ? firstTime({ ...wanted, anchor_at: now, last_due_at: null }, now) : null;
  const [row] = await tx.query(insert, [
    randomUUIDv7(),
    teamId,
    wanted.name,
    wanted.cron_schedule,
    wanted.timezone,
    now,
    ...requestValues(wanted),
    nextRunAt !== null,
    nextRunAt,
    creator.kind,
    creator.uid,
    owner.userUid ?? null,
    executor.kind,
    executor.uid,
  ]);
  if (!row) throw new Error('the schedule was not inserted');
  await recordChange(tx, by, { action: 'schedule.create', subject: subjectOf(row), after: stateOf(row) });
  return row;
}

/**
 * Replaces a schedule that the transaction has locked. Its next time stays the same unless the expression, the time zone or `enabled`
 * has changed.
 */
export async function updateSchedule(
  tx: Queryable,
  stored: ScheduleRow,
  by: Author,
  wanted: WantedSchedule,
  enabled: boolean,
  executor: RunActor,
): Promise<ScheduleRow> {
  const { anchorAt, nextRunAt } = changedTimes(stored, wanted, enabled, await databaseClock(tx));
  const [row] = await tx.query(update, [
    stored.id,
    wanted.name,
    wanted.cron_schedule,
    wanted.timezone,
    anchorAt,
    ...requestValues(wanted),
    nextRunAt !== null,
    nextRunAt,
    by.creator.kind,
    by.creator.uid,
    executor.kind,
    executor.uid,
  ]);
  if (!row) throw new Error('the schedule was not updated');
  if (!row.enabled) await skipWaitingStarts(tx, [row.id]);
  await recordUpdate(tx, by, stored, row);
  return row;
}

const recordUpdate = (tx: Queryable, by: Author, before: ScheduleRow, after: ScheduleRow): Promise<void> =>
  recordChange(tx, by, {
    action: 'schedule.update',
    subject: subjectOf(after),
    before: stateOf(before),
    after: stateOf(after),
    ...(after.enabled ? {} : { endsAccess: true }),
  });

/** Pauses or resumes a schedule that the transaction has locked. Changes nothing if the schedule is already paused or enabled, as wanted. */
export async function setScheduleEnabled(
  tx: Queryable,
  stored: ScheduleRow,
  by: Author,
  enabled: boolean,
): Promise<ScheduleRow> {
  if (stored.enabled === enabled) return stored;
  const nextRunAt = enabled ? firstTime(stored, await databaseClock(tx)) : null;
  const [row] = await tx.query(setEnabled, [stored.id, nextRunAt !== null, nextRunAt]);
  if (!row) throw new Error('the schedule was not updated');
  if (!row.enabled) await skipWaitingStarts(tx, [row.id]);
  await recordUpdate(tx, by, stored, row);
  return row;
}

/** Deletes a schedule that the transaction has locked, with its history. */
export async function deleteSchedule(tx: Queryable, stored: ScheduleRow, by: Author): Promise<void> {
  await keepStartsOfDeleted(tx, [stored.id]);
  await tx.query(remove, [stored.id]);
  const change = { action: 'schedule.delete', before: stateOf(stored), endsAccess: true } as const;
  await recordChange(tx, by, { ...change, subject: subjectOf(stored) });
}
