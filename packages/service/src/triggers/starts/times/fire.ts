/** Fires the schedules that are due: those of teams, and those of automations. */
import type { Logger } from 'pino';
import { eachAlone } from '../../../platform/store/database/each-alone.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { writeRuns } from '../../../runs/runs/submit/submit.ts';
import { type AutomationRow, automationColumns, automationRow } from '../../automations/automation-row.ts';
import { countNow } from '../../automations/failures.ts';
import { claimDueSchedule, claimDueSchedules, type DueSchedule } from '../../schedules/claim.ts';
import { timesOf } from '../../schedules/schedule-row.ts';
import { nextTime } from '../../schedules/times/next-time.ts';
import { countsPassing, readOwners, scheduleOfRun } from '../decide/owner.ts';
import {
  type Candidate,
  outcomeOf,
  resultOf,
  runsOf,
  type StartDeps,
  type Started,
  startAll,
} from '../decide/start.ts';
import { recordFires } from './record-fires.ts';

export interface FireDeps extends StartDeps {
  readonly log: Logger;
}

/** Fires a batch of schedules that are due, with their runs, in one transaction. Returns how many. */
export async function fireDueSchedules(deps: FireDeps): Promise<number> {
  let claimed: readonly DueSchedule[] = [];
  try {
    await deps.db.transaction(async (tx) => {
      claimed = await claimDueSchedules(tx);
      await fireClaimed(deps, tx, claimed);
    });
  } catch (error) {
    if (error instanceof StoreUnavailable || claimed.length === 0) throw error;
    deps.log.warn({ err: error, schedules: claimed.length }, 'a batch of schedules failed; each is fired on its own');
    const failures: unknown[] = [];
    await eachAlone(
      claimed,
      ({ id }) => fireAlone(deps, id),
      (_, failure) => failures.push(failure),
    );
    if (failures.length > 0) throw failures[0];
  }
  return claimed.length;
}

/** Fires one schedule. An unexpected error counts as a failure of its fire, so that it does not delay the others. */
async function fireAlone(deps: FireDeps, id: string): Promise<void> {
  try {
    await deps.db.transaction(async (tx) => await fireClaimed(deps, tx, await claimDueSchedule(tx, id)));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.log.error({ err: error, schedule: id }, 'a schedule could not create its run');
    await deps.db.transaction(async (tx) => {
      const failed = { outcome: 'failed', reason: 'the service could not create the run; its log says why' } as const;
      const due = await claimDueSchedule(tx, id);
      const { free } = await lockAutomations(tx, due);
      await recordFires(
        tx,
        free.map((schedule) => ({ schedule, nextRunAt: nextOrNone(schedule), result: failed, counts: true })),
      );
    });
  }
}

/** Returns the first time after now. Times that passed in between are skipped. Null: there is none. */
function nextOf(schedule: DueSchedule): string | null {
  const { next_run_at: dueAt, claimed_at: claimedAt } = schedule;
  const next = nextTime(timesOf(schedule), Math.max(Date.parse(claimedAt), Date.parse(dueAt)));
  return next === null ? null : new Date(next).toISOString();
}

/** Does the same for a schedule whose times may not be computable, such as one of a time zone that Node.js no longer knows. */
function nextOrNone(schedule: DueSchedule): string | null {
  try {
    return nextOf(schedule);
  } catch {
    return null;
  }
}

/**
 * Skips automations that another transaction has locked: their schedules fire in a later round. The transaction holds locks of schedules,
 * and a change of an automation locks them after the automation, so waiting here could be a deadlock.
 */
const lockFired = defineStatement({
  name: 'lock_automations_of_due_schedules',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.uid = ANY ($1::text[]) ORDER BY a.uid FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/** Locks the automations of schedules. `free`: the schedules of teams, and those whose automation is locked now. */
async function lockAutomations(tx: Transaction, due: readonly DueSchedule[]) {
  const uids = new Set(due.flatMap(({ automation_uid: uid }) => uid ?? []));
  const automations = uids.size === 0 ? [] : await tx.query(lockFired, [[...uids]]);
  const locked = new Set(automations.map(({ uid }) => uid));
  return { automations, free: due.filter(({ automation_uid: uid }) => uid === null || locked.has(uid)) };
}

/** A schedule that fires, and the row of its automation if it has one. */
interface Firing {
  readonly schedule: DueSchedule;
  readonly automation?: AutomationRow;
  readonly candidate: Candidate;
}

/** Returns the schedules that can fire now, with their owners. */
async function findFiring(tx: Transaction, due: readonly DueSchedule[]): Promise<Firing[]> {
  const { automations, free } = await lockAutomations(tx, due);
  const own = free.filter(({ automation_uid: uid }) => uid === null);
  const owners = await readOwners(tx, own, automations);
  return free.flatMap((schedule): Firing[] => {
    const owner = owners.get(schedule.automation_uid ?? schedule.id);
    if (!owner) return [];
    const automation = automations.find(({ uid }) => uid === schedule.automation_uid);
    const candidate: Candidate = { owner, event: { kind: 'time', schedule: scheduleOfRun(schedule) }, lane: null };
    return [{ schedule, ...(automation ? { automation } : {}), candidate }];
  });
}

async function fireClaimed(deps: FireDeps, tx: Transaction, due: readonly DueSchedule[]): Promise<void> {
  if (due.length === 0) return;
  const firing = await findFiring(tx, due);
  const started = await startAll(
    deps,
    tx,
    firing.map(({ candidate }) => candidate),
  );
  await writeRuns(tx, runsOf(started));
  const fires = firing.flatMap((each, index): Fire[] => {
    const one = started[index];
    return one ? [{ ...each, started: one }] : [];
  });
  const stopped = await countOfAutomations(tx, fires);
  await recordFires(
    tx,
    fires.map(({ schedule, started: one }) => ({
      schedule,
      nextRunAt: stopped.has(schedule.automation_uid ?? '') ? null : nextOf(schedule),
      result: outcomeOf(one),
      counts: resultOf(one, countsPassing.schedule)?.counts ?? false,
    })),
  );
}

type Fire = Firing & { readonly started: Started };

/** Counts the results of automations, which are locked. Returns the UIDs of those that are disabled now. */
async function countOfAutomations(tx: Transaction, fires: readonly Fire[]): Promise<Set<string>> {
  const stopped = new Set<string>();
  const ofAutomation = Map.groupBy(fires, ({ automation }) => automation);
  for (const [automation, own] of ofAutomation) {
    if (!automation) continue;
    const results = own
      .map(({ started }) => resultOf(started, countsPassing.automation))
      .filter((result) => result !== undefined);
    if (!automation.enabled || !(await countNow(tx, automation, results))) stopped.add(automation.uid);
  }
  return stopped;
}
