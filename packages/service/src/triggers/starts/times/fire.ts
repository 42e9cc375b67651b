/** Fires the schedules that are due: the schedules of teams, and the schedules of automations. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { observe } from '../../../platform/metrics/record.ts';
import { afterCommit, type Queryable, type Transaction } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { eachAlone } from '../../../platform/store/database/sweep.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { writeRuns } from '../../../runs/runs/submit/submit.ts';
import { type AutomationRow, automationColumns, automationRow } from '../../automations/automation-row.ts';
import { countNow } from '../../automations/failures.ts';
import { insertStarts, type NewStart, skipWaitingStarts, startsParameter } from '../../history/write.ts';
import { batchSize, type DueSchedule, waitForNext } from '../../schedules/claim.ts';
import { moveTimes, timesParameter } from '../../schedules/record.ts';
import { timesOf } from '../../schedules/schedule-row.ts';
import { nextTime } from '../../schedules/times/next-time.ts';
import { countsPassing, readOwners, scheduleOfRun } from '../decide/owner.ts';
import {
  type Candidate,
  type Failure,
  outcomeOf,
  resultOf,
  runsOf,
  type StartDeps,
  type Started,
  startAll,
} from '../decide/start.ts';
import { notifyOfMissedTimes } from '../missed.ts';
import { claimDueSchedule, claimDueSchedules, lockListeners, startsOfListeners } from './listeners.ts';

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

export interface FireDeps extends StartDeps {
  readonly log: Logger;
}

/** The result of a schedule whose run cannot be created because of an unexpected error. */
const unexpected: Failure = {
  outcome: 'failed',
  reason: 'the service could not create the run; its log has the reason',
  passing: true,
};

/**
 * Fires a batch of due schedules and creates their runs in one transaction. If this fails unexpectedly, fires each schedule alone.
 * Returns the number of schedules.
 */
export async function fireDueSchedules(deps: FireDeps): Promise<number> {
  let claimed: readonly DueSchedule[] = [];
  try {
    await deps.db.transaction(async (tx) => {
      claimed = await claimDueSchedules(tx);
      await fire(deps, tx, claimed);
    });
  } catch (error) {
    if (error instanceof StoreUnavailable || claimed.length === 0) throw error;
    deps.log.warn(
      { err: error, schedules: claimed.length },
      'a batch of schedules failed; each schedule is fired separately',
    );
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

/** Fires one schedule. If this throws an unexpected error, records a failure of the schedule, so that the schedule does not delay others again. */
async function fireAlone(deps: FireDeps, id: string): Promise<void> {
  const fireOne = (failure?: Failure) =>
    deps.db.transaction(async (tx) => await fire(deps, tx, await claimDueSchedule(tx, id), failure));
  try {
    await fireOne();
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.log.error({ err: error, schedule: id }, 'a schedule could not create its run');
    await fireOne(unexpected);
  }
}

/**
 * Returns the next time of a schedule that is in the future, as text. Skips times that were missed. Returns null if there is no such
 * time. Throws if the time cannot be computed: for example, Node.js may no longer know the time zone.
 */
function nextOf(schedule: DueSchedule): string | null {
  const { next_run_at: dueAt, claimed_at: claimedAt } = schedule;
  const next = nextTime(timesOf(schedule), Math.max(Date.parse(claimedAt), Date.parse(dueAt)));
  return next === null ? null : new Date(next).toISOString();
}

/**
 * Locks automations, except those that another transaction has locked. The schedules of these automations fire in a later round.
 * Waiting for them could cause a deadlock: this transaction has locked schedules, and a transaction that changes an automation locks
 * first the automation and then its schedules.
 */
const lockFired = defineStatement({
  name: 'lock_automations_of_due_schedules',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.uid = ANY ($1::text[]) ORDER BY a.uid FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/** A schedule that fires. */
interface Fire {
  readonly schedule: DueSchedule;
  /** The locked automation of the schedule; undefined: it is a schedule of the team. */
  readonly automation: AutomationRow | undefined;
  readonly nextRunAt: string | null;
  readonly started: Started;
}

/**
 * Fires the schedules whose automations this transaction can lock: the automation that a schedule belongs to, and those that name it.
 * Creates the runs of the schedules, and records starts and next times. The others fire in a later round. `failure`: the result to record for all of them; no run is created.
 */
async function fire(deps: FireDeps, tx: Transaction, due: readonly DueSchedule[], failure?: Failure): Promise<void> {
  const uids = new Set(due.flatMap(({ automation_uid: uid }) => uid ?? []));
  const automations = uids.size === 0 ? [] : await tx.query(lockFired, [[...uids]]);
  const automationOf = new Map(automations.map((row) => [row.uid, row]));
  const listeners = await lockListeners(tx, due);
  const free = due.filter(
    ({ automation_uid: uid, listener_uids: listening }) =>
      (uid === null || automationOf.has(uid)) && listening.every((each) => listeners.has(each)),
  );
  if (free.length === 0) return;
  const started = failure ? free.map(() => failure) : await startTimes(deps, tx, free, automations);
  await writeRuns(tx, runsOf(started));
  const fires = free.flatMap((schedule, index): Fire[] => {
    const one = started[index];
    const automation = automationOf.get(schedule.automation_uid ?? '');
    return one
      ? [{ schedule, automation, nextRunAt: failure ? nextOrNone(schedule) : nextOf(schedule), started: one }]
      : [];
  });
  const stopped = failure ? new Set<string>() : await countOfAutomations(tx, fires);
  await recordFires(tx, fires, stopped, await startsOfListeners(tx, free, listeners));
  afterCommit(tx, () => {
    for (const { schedule } of fires) {
      const lateMs = Date.parse(schedule.claimed_at) - Date.parse(schedule.next_run_at);
      observe('runyard_schedule_lateness_seconds', {}, Math.max(0, lateMs) / 1_000);
    }
  });
}

/** Returns the next time of a schedule, or null if it cannot be computed. */
function nextOrNone(schedule: DueSchedule): string | null {
  try {
    return nextOf(schedule);
  } catch {
    return null;
  }
}

/** Decides about the times of schedules, and prepares their runs. */
async function startTimes(
  deps: FireDeps,
  tx: Transaction,
  free: readonly DueSchedule[],
  automations: readonly AutomationRow[],
): Promise<Started[]> {
  const ofTeams = free.filter(({ automation_uid: uid }) => uid === null);
  const owners = await readOwners(tx, ofTeams, automations);
  const candidates = free.map((schedule): Candidate => {
    const owner = owners.get(schedule.automation_uid ?? schedule.id);
    if (!owner) throw new Error('a schedule has no owner');
    return { owner, event: { kind: 'time', schedule: scheduleOfRun(schedule), isOwn: true }, lane: null };
  });
  return await startAll(deps, tx, candidates);
}

/** Counts the results of the locked automations. Returns the UIDs of the automations that are disabled now. */
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

/**
 * Records fires. `stopped`: the disabled automations. Their schedules have no next time. `others`: further starts to write. If a fire causes the pause of its schedule, also
 * ends the waiting starts of the schedule. Throws if another process has changed the next time of one of the schedules.
 */
async function recordFires(
  tx: Queryable,
  fires: readonly Fire[],
  stopped: ReadonlySet<string>,
  others: readonly NewStart[],
): Promise<void> {
  const times = fires.map(({ schedule, automation, nextRunAt, started }) => ({
    scheduleId: schedule.id,
    dueAt: schedule.next_run_at,
    nextRunAt: automation && stopped.has(automation.uid) ? null : nextRunAt,
    outcome: started.outcome,
    reason: started.outcome === 'started' ? undefined : started.reason,
    failures: resultOf(started, countsPassing.schedule)?.counts ? 1 : 0,
  }));
  const starts = fires.map(({ schedule, started }) => ({
    automationUid: schedule.automation_uid,
    event: { scheduleId: schedule.id, dueAt: schedule.next_run_at },
    lane: null,
    result: outcomeOf(started),
  }));
  const moved = await tx.query(record, [timesParameter(times), startsParameter([...starts, ...others])]);
  if (moved.length !== fires.length) throw new Error('a schedule fired although another process had moved it');
  for (const { schedule, automation, started } of fires)
    await notifyOfMissedTimes(tx, schedule, automation, started.outcome === 'failed' ? started.reason : undefined);
  await skipWaitingStarts(
    tx,
    moved.filter(({ enabled }) => !enabled).map(({ id }) => id),
  );
}

/** If the next schedule is due within this time, the round waits for it. This time is longer than the pause between two rounds. */
const horizonMs = 1_500;

/** Selects a row if a round would fire a schedule or wait for one. */
export const dueSchedules = defineStatement({
  name: 'find_due_schedules',
  text: `SELECT FROM schedules WHERE next_run_at <= now() + interval '${horizonMs} milliseconds' LIMIT 1`,
  row: {},
});

/** If a batch has fired this many schedules, the next batch begins without a pause, because more schedules may be due. */
const manyDue = batchSize / 4;
/**
 * Shortest pause between two batches if the first one was small. Schedules that become due during the pause fire together, which costs
 * less.
 */
const pauseMs = 50;

/**
 * Fires the due schedules. If the next time of a schedule is close, waits for it, so that schedules fire within milliseconds of their
 * time. Uses only the clock of the database, because the clocks of the processes may differ.
 */
export async function runSchedules(deps: FireDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const fired = await fireDueSchedules(deps);
    if (fired >= manyDue) continue;
    const waitMs = await waitForNext(deps.db);
    if (waitMs === null || waitMs > horizonMs) return;
    await delay(Math.max(pauseMs, Math.ceil(waitMs) + 1), undefined, { signal }).catch(() => undefined);
  }
}
