/** Notifies people of times and events that started no run. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { noticeOfOwner, type OwnerNotice } from '../../runs/inbox/notify-owner.ts';
import type { AutomationRow } from '../automations/automation-row.ts';
import type { DueSchedule } from '../schedules/claim.ts';
import { type ScheduleRow, timesOf } from '../schedules/schedule-row.ts';
import { nextTimes } from '../schedules/times/next-time.ts';

const personOf = ({ executor_kind: kind, executor_uid: uid }: Pick<ScheduleRow, 'executor_kind' | 'executor_uid'>) =>
  kind === 'user' ? { uid, always: false } : undefined;

/** Returns the notice that an event of a schedule of the team, or of an automation, started no run. */
export function noticeOfMissed(
  of: { readonly schedule: ScheduleRow } | { readonly automation: AutomationRow },
  reason: string,
  count?: number,
): OwnerNotice {
  const data = count === undefined ? {} : { count };
  if ('automation' in of) {
    const { team_id: teamId, uid: automationUid, name, factory_uid: factoryUid } = of.automation;
    const person = personOf(of.automation);
    return noticeOfOwner(
      { teamId, automationUid },
      { on: 'missed', title: name, description: reason, factoryUid, person, data },
    );
  }
  const { team_id: teamId, id: scheduleId, name } = of.schedule;
  return noticeOfOwner(
    { teamId, scheduleId },
    { on: 'missed', title: name, description: reason, person: personOf(of.schedule), data },
  );
}

/** Times that passed since a schedule was due are counted up to this number. */
const mostMissed = 1_000;

/** Returns how many times of a schedule have passed since its due time, for example because the service was down. */
function passedTimes(schedule: DueSchedule): number {
  const now = Date.parse(schedule.claimed_at);
  const due = Date.parse(schedule.next_run_at);
  // Two times are at least a minute apart.
  if (now - due < 60_000) return 0;
  return nextTimes(timesOf(schedule), due, mostMissed).filter((time) => time <= now).length;
}

/**
 * Notifies of a time of a schedule that started no run, and of times that passed before it could fire. The caller has locked the schedule
 * and its automation.
 */
export async function notifyOfMissedTimes(
  tx: Queryable,
  schedule: DueSchedule,
  automation: AutomationRow | undefined,
  failure: string | undefined,
): Promise<void> {
  const passed = passedTimes(schedule);
  if (passed === 0 && failure === undefined) return;
  const many = passed === mostMissed ? `at least ${mostMissed}` : `${passed}`;
  const missed =
    passed === 0 ? '' : `${many} times after ${schedule.next_run_at} passed, because the service was down.`;
  const description = [missed, failure ?? ''].filter((text) => text !== '').join(' ');
  const of = automation ? { automation } : { schedule };
  const { statement, values } = noticeOfMissed(of, description, passed + (failure === undefined ? 0 : 1));
  await tx.query(statement, values);
}
