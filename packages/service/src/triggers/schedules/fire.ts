import type { Logger } from 'pino';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { StoreUnavailable } from '../../platform/store/database/unavailable.ts';
import { type PreparedRun, prepareRun, type SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { writeRuns } from '../../runs/runs/submit/write-runs.ts';
import { mayStartRuns } from '../../team/access/may-start-runs.ts';
import { claimDueSchedule, claimDueSchedules, type DueSchedule } from './claim.ts';
import { decide } from './decide.ts';
import type { FireAutomations } from './fire-automations.ts';
import { readLoads } from './live-runs.ts';
import { type FiredTime, recordFiredTimes } from './record.ts';
import { reasonOf, requestOf } from './run-of-schedule.ts';
import { liveLimitOf, type ScheduleRow, timesOf } from './schedule-row.ts';
import { nextTime } from './times/next-time.ts';

export interface ScheduleDeps extends SubmitDeps {
  readonly db: Database;
  readonly log: Logger;
  readonly fireAutomations: FireAutomations;
}

/** A run to write, or the reason why there is none. */
type Spawned = PreparedRun | { readonly kind: 'failed'; readonly reason: string };

/** Fires a batch of schedules that are due, with their runs, in one transaction. Returns how many. */
export async function fireDueSchedules(deps: ScheduleDeps): Promise<number> {
  let claimed: readonly DueSchedule[] = [];
  try {
    await deps.db.transaction(async (tx) => {
      claimed = await claimDueSchedules(tx);
      await fireClaimed(deps, tx, claimed);
    });
  } catch (error) {
    if (error instanceof StoreUnavailable || claimed.length === 0) throw error;
    deps.log.warn({ err: error, schedules: claimed.length }, 'a batch of schedules failed; each is fired on its own');
    for (const { id } of claimed) await fireAlone(deps, id);
  }
  return claimed.length;
}

/** Fires one schedule. An unexpected error counts as a failure of its fire, so that it does not delay the others. */
async function fireAlone(deps: ScheduleDeps, id: string): Promise<void> {
  try {
    await deps.db.transaction(async (tx) => await fireClaimed(deps, tx, await claimDueSchedule(tx, id)));
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.log.error({ err: error, schedule: id }, 'a schedule could not create its run');
    await deps.db.transaction(async (tx) => {
      const failed = { outcome: 'failed', reason: 'the service could not create the run; its log says why' } as const;
      const due = await claimDueSchedule(tx, id);
      if (due.length > 0)
        await recordFiredTimes(
          tx,
          due.map((schedule) => ({ ...timeOrNone(schedule), ...failed })),
        );
    });
  }
}

/** Returns the time that fires, and the first one after now. Times that passed in between are skipped. */
function timeOf(schedule: DueSchedule): Pick<FiredTime, 'scheduleId' | 'fireId' | 'dueAt' | 'nextRunAt'> {
  const { id, fire_id: fireId, next_run_at: dueAt, claimed_at } = schedule;
  const next = nextTime(timesOf(schedule), Math.max(Date.parse(claimed_at), Date.parse(dueAt)));
  return { scheduleId: id, fireId, dueAt, nextRunAt: next === null ? null : new Date(next).toISOString() };
}

/** Does the same for a schedule whose times may not be computable, such as one of a time zone that Node.js no longer knows. */
function timeOrNone(schedule: DueSchedule): ReturnType<typeof timeOf> {
  try {
    return timeOf(schedule);
  } catch {
    const { id, fire_id: fireId, next_run_at: dueAt } = schedule;
    return { scheduleId: id, fireId, dueAt, nextRunAt: null };
  }
}

async function fireClaimed(deps: ScheduleDeps, tx: Queryable, due: readonly DueSchedule[]): Promise<void> {
  if (due.length === 0) return;
  const own = due.filter(({ automation_uid: uid }) => uid === null);
  const fired = [...(await fireOwn(deps, tx, own)), ...(await fireTriggers(deps, tx, due))];
  await recordFiredTimes(tx, fired);
}

/** Fires the schedules of automations, by the rules of their automation. */
async function fireTriggers(deps: ScheduleDeps, tx: Queryable, due: readonly DueSchedule[]): Promise<FiredTime[]> {
  const triggers = new Map(due.flatMap((row) => (row.automation_uid === null ? [] : [[row.id, row] as const])));
  if (triggers.size === 0) return [];
  const fires = await deps.fireAutomations(tx, [...triggers.values()]);
  return fires.flatMap(({ stops, ...fire }) => {
    const schedule = triggers.get(fire.scheduleId);
    return schedule ? [{ ...timeOf(schedule), ...fire, ...(stops ? { nextRunAt: null } : {}) }] : [];
  });
}

/** Fires schedules of the team, and writes their runs. */
async function fireOwn(deps: ScheduleDeps, tx: Queryable, due: readonly DueSchedule[]): Promise<FiredTime[]> {
  const limited = due.filter((schedule) => liveLimitOf(schedule) !== null);
  const loadOf = await readLoads(
    tx,
    limited.map(({ id }) => id),
  );
  const prepared: PreparedRun[] = [];
  const spawn = await spawner(deps, tx, due);
  const fired: FiredTime[] = [];
  for (const schedule of due) {
    const time = timeOf(schedule);
    const decision = decide(schedule, loadOf(schedule.id));
    switch (decision.kind) {
      case 'skip':
        fired.push({ ...time, outcome: 'skipped', reason: decision.reason });
        break;
      case 'wait':
        fired.push({ ...time, outcome: 'waiting', reason: decision.reason });
        break;
      case 'start': {
        const spawned = await spawn(schedule);
        const { cancelsPrevious } = decision;
        if (spawned.kind === 'prepared') prepared.push(spawned);
        fired.push(
          spawned.kind === 'prepared'
            ? { ...time, outcome: 'started', runId: spawned.run.id, cancelsPrevious }
            : { ...time, outcome: 'failed', reason: spawned.reason },
        );
      }
    }
  }
  await writeRuns(tx, prepared);
  return fired;
}

/** Returns the function that prepares the run of a schedule. The run acts as the last editor of the schedule. */
export async function spawner(
  deps: SubmitDeps,
  tx: Queryable,
  schedules: readonly ScheduleRow[],
): Promise<(schedule: ScheduleRow) => Promise<Spawned>> {
  const actorOf = (row: ScheduleRow) => ({ teamId: row.team_id, kind: row.editor_kind, uid: row.editor_uid });
  const mayStart = await mayStartRuns(tx, schedules.map(actorOf));
  return async (schedule) => {
    const { teamId, ...creator } = actorOf(schedule);
    if (!mayStart({ teamId, ...creator })) {
      const who = creator.kind === 'user' ? 'The person' : 'The agent key';
      return {
        kind: 'failed',
        reason: `${who} that last edited the schedule may not start runs of the team any more; have somebody else update it.`,
      };
    }
    const submission = {
      actor: { teamId, creator },
      request: requestOf(schedule),
      source: 'SCHEDULED_AGENT',
      schedule: { id: schedule.id, name: schedule.name, cronSchedule: schedule.cron_schedule },
    } as const;
    const outcome = await prepareRun(deps, submission, tx);
    return outcome.kind === 'prepared' ? outcome : { kind: 'failed', reason: reasonOf(outcome) };
  };
}
