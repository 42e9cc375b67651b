import type { FireOutcome } from '@runyard/contract/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';

/** Failed fires in a row after which a schedule is paused. */
export const maxSpawnFailures = 10;
/** Beginning of the error of a schedule that was paused because of failures; the last failure follows. */
export const pausedBecause = `Paused after ${maxSpawnFailures} failures in a row. The last one:`;

/** One fire of a schedule, with its next time. */
export interface FiredTime {
  readonly scheduleId: string;
  /** Id of the fire. */
  readonly fireId: string;
  /** The time that fires, as the claim read it. */
  readonly dueAt: string;
  /** Null: there is none. */
  readonly nextRunAt: string | null;
  readonly outcome: FireOutcome;
  readonly runId?: string;
  readonly reason?: string;
  readonly cancelsPrevious?: boolean;
}

/**
 * Sets the next times of schedules and writes their history. Compare-and-set on the time that fires: does not return a schedule whose
 * time was changed meanwhile. After ten failures in a row a schedule is paused.
 */
const recordFires = defineStatement({
  name: 'record_schedule_fires',
  text: `
    WITH input AS (
      SELECT * FROM jsonb_to_recordset($1::jsonb) AS i(
        schedule_id uuid, fire_id uuid, due_at timestamptz, next_run_at timestamptz, outcome text, run_id uuid, reason text, cancels_previous boolean)
    ), moved AS (
      UPDATE schedules s SET
        last_due_at = i.due_at,
        enabled = paused.because IS NULL,
        next_run_at = CASE WHEN paused.because IS NULL THEN i.next_run_at END,
        last_ran_at = CASE WHEN i.outcome = 'started' THEN clock_timestamp() ELSE s.last_ran_at END,
        last_spawn_error = CASE i.outcome WHEN 'started' THEN paused.because WHEN 'failed' THEN concat_ws(' ', paused.because, i.reason)
          ELSE coalesce(paused.because, s.last_spawn_error) END,
        spawn_failures = CASE i.outcome WHEN 'started' THEN 0 WHEN 'failed' THEN s.spawn_failures + 1 ELSE s.spawn_failures END
      FROM input i, LATERAL (
        SELECT CASE
          WHEN i.next_run_at IS NULL THEN 'Paused: the expression gives no further time.'
          WHEN i.outcome = 'failed' AND (SELECT spawn_failures FROM schedules WHERE id = i.schedule_id) + 1 >= ${maxSpawnFailures}
            THEN '${pausedBecause}' END AS because
      ) paused
      WHERE s.id = i.schedule_id AND s.next_run_at = i.due_at
      RETURNING s.id, s.enabled
    ), fire AS (
      INSERT INTO schedule_fires (id, schedule_id, due_at, outcome, run_id, reason, cancels_previous)
      SELECT i.fire_id, i.schedule_id, i.due_at, i.outcome, i.run_id, i.reason, coalesce(i.cancels_previous, false)
      FROM input i JOIN moved ON moved.id = i.schedule_id
    )
    SELECT id, enabled FROM moved`,
  row: { id: uuid, enabled: boolean },
});

const skipWaiting = defineStatement({
  name: 'skip_waiting_fires_of_schedules',
  text: `
    UPDATE schedule_fires SET outcome = 'skipped', reason = 'the schedule was paused while it waited'
    WHERE schedule_id = ANY ($1::uuid[]) AND outcome = 'waiting' RETURNING id`,
  row: { id: uuid },
});

/** Ends the waiting fires of schedules that are paused. */
export async function skipWaitingFires(tx: Queryable, scheduleIds: readonly string[]): Promise<void> {
  if (scheduleIds.length > 0) await tx.query(skipWaiting, [scheduleIds]);
}

/** Records fires of schedules that the transaction has locked. Throws if another process changed the time of one. */
export async function recordFiredTimes(tx: Queryable, fired: readonly FiredTime[]): Promise<void> {
  const rows = fired.map((fire) => ({
    schedule_id: fire.scheduleId,
    fire_id: fire.fireId,
    due_at: fire.dueAt,
    next_run_at: fire.nextRunAt,
    outcome: fire.outcome,
    run_id: fire.runId,
    reason: fire.reason,
    cancels_previous: fire.cancelsPrevious,
  }));
  const moved = await tx.query(recordFires, [JSON.stringify(rows)]);
  if (moved.length !== fired.length) throw new Error('a schedule fired although another process had moved it');
  const paused = moved.filter(({ enabled }) => !enabled);
  await skipWaitingFires(
    tx,
    paused.map(({ id }) => id),
  );
}

const recordByHand = defineStatement({
  name: 'record_schedule_start_by_hand',
  text: `
    WITH ran AS (UPDATE schedules SET last_ran_at = clock_timestamp() WHERE id = $1 RETURNING id)
    INSERT INTO schedule_fires (schedule_id, outcome, run_id, starter_kind, starter_uid)
    SELECT id, 'started', $2, $3, $4 FROM ran RETURNING id`,
  row: { id: uuid },
});

/** Records a run that a person started by hand. */
export async function recordStartByHand(
  tx: Queryable,
  scheduleId: string,
  runId: string,
  starter: RunActor,
): Promise<void> {
  await tx.query(recordByHand, [scheduleId, runId, starter.kind, starter.uid]);
}
