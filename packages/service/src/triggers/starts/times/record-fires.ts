import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { insertStarts, type StartOutcome, skipWaitingStarts, startsParameter } from '../../history/write.ts';
import type { DueSchedule } from '../../schedules/claim.ts';
import { moveTimes, timesParameter } from '../../schedules/record.ts';

/** A schedule that fired, which the transaction has locked. */
export interface Fired {
  readonly schedule: DueSchedule;
  /** Null: there is none. */
  readonly nextRunAt: string | null;
  readonly result: StartOutcome;
  /** Whether a failure counts towards the pause of the schedule. */
  readonly counts: boolean;
}

/** Sets the next times of schedules and writes their starts. */
const record = defineStatement({
  name: 'record_fires_of_schedules',
  text: `
    WITH moved AS (${moveTimes('$1')}
    ), start AS (${insertStarts('$2')}
    )
    SELECT id, enabled FROM moved`,
  row: { id: uuid, enabled: boolean },
});

/** Records fires, and ends the waiting starts of schedules that are paused now. Throws if another process changed the time of a schedule. */
export async function recordFires(tx: Queryable, fired: readonly Fired[]): Promise<void> {
  if (fired.length === 0) return;
  const times = fired.map(({ schedule, nextRunAt, result, counts }) => ({
    scheduleId: schedule.id,
    dueAt: schedule.next_run_at,
    nextRunAt,
    outcome: result.outcome,
    reason: result.outcome === 'started' ? undefined : result.reason,
    failures: counts ? 1 : 0,
  }));
  const starts = fired.map(({ schedule, result }) => ({
    automationUid: schedule.automation_uid,
    event: { scheduleId: schedule.id, dueAt: schedule.next_run_at },
    lane: null,
    result,
  }));
  const moved = await tx.query(record, [timesParameter(times), startsParameter(starts)]);
  if (moved.length !== fired.length) throw new Error('a schedule fired although another process had moved it');
  await skipWaitingStarts(
    tx,
    moved.filter(({ enabled }) => !enabled).map(({ id }) => id),
  );
}
