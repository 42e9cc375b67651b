/**
 * Does the work that overlap policies postpone: creates the runs of starts that wait for the end of another run, and cancels runs that a
 * newer run replaces.
 */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { StoreUnavailable } from '../../platform/store/database/unavailable.ts';
import { writeRuns } from '../../runs/runs/submit/submit.ts';
import { type AutomationRow, automationColumns, automationRow } from '../automations/automation-row.ts';
import { countNow } from '../automations/failures.ts';
import { type Lane, liveOfAutomation, liveOfSchedule, ownerOf, readLoads } from '../history/load.ts';
import {
  failOldStart,
  lockOldestWaiting,
  settleStart,
  skipWaitingStarts,
  type WaitingStart,
} from '../history/write.ts';
import { readScheduleOfStart } from '../schedules/of-automation.ts';
import { recordLaterStart } from '../schedules/record.ts';
import { type ScheduleRow, scheduleColumns, scheduleRow } from '../schedules/schedule-row.ts';
import { noteLaterOutcome, readWebhookDelivery } from '../webhooks/log/deliveries.ts';
import { readWebhook } from '../webhooks/webhooks.ts';
import { countsPassing, type EventOfRun, type Owner, readOwners } from './decide/owner.ts';
import {
  type Decision,
  decide,
  liveLimitOf,
  noLoad,
  outcomeOf,
  prepareStart,
  resultOf,
  runsOf,
  type StartDeps,
  type Started,
} from './decide/start.ts';
import { whyStartIsOver } from './limit-pull-requests.ts';
import { noticeOfMissed } from './missed.ts';

/** Number of lanes that one query reads. */
const pageSize = 100;

/**
 * Returns the SQL of a page of waiting starts that can be settled now: the oldest of each lane, if the policy allows another live run
 * in the lane, the automation is disabled, or the policy was not applied yet. A start that waits is started even if the policy has
 * changed since.
 */
const startable = (behind: string): string => `
    SELECT w.id, w.automation_uid, w.schedule_id, w.lane
    FROM (SELECT DISTINCT ON (${ownerOf('s')}, s.lane) s.* FROM starts s WHERE s.outcome = 'waiting'
      ORDER BY ${ownerOf('s')}, s.lane, s.id) w
      LEFT JOIN automations a ON a.uid = w.automation_uid
      LEFT JOIN schedules s ON s.id = w.schedule_id AND w.automation_uid IS NULL
    WHERE ${behind} CASE WHEN w.automation_uid IS NOT NULL
        THEN w.undecided OR NOT a.enabled OR a.overlap = 'allow' OR NOT EXISTS (SELECT ${liveOfAutomation('w.automation_uid', 'w.lane')})
      ELSE s.enabled AND ((s.overlap = 'allow' AND s.max_live_runs IS NULL)
        OR (SELECT count(*) ${liveOfSchedule('w.schedule_id')}) < coalesce(s.max_live_runs, 1)) END
    ORDER BY w.id LIMIT ${pageSize}`;

const startableRow = {
  id: uuid,
  automation_uid: nullable(text()),
  schedule_id: nullable(uuid),
  lane: nullable(text()),
};

/** Finds the starts that can be settled now. */
export const findStartable = defineStatement({
  name: 'find_startable_starts',
  text: startable(''),
  row: startableRow,
});

const findNextStartable = defineStatement({
  name: 'find_next_startable_starts',
  text: startable('w.id > $1 AND'),
  row: startableRow,
});

const lockSchedule = defineStatement({
  name: 'lock_schedule_with_waiting_start',
  text: `SELECT ${scheduleColumns} FROM schedules s WHERE s.id = $1 AND s.enabled FOR UPDATE SKIP LOCKED`,
  row: scheduleRow,
});

const lockAutomation = defineStatement({
  name: 'lock_automation_with_waiting_start',
  text: `SELECT ${automationColumns} FROM automations a WHERE a.uid = $1 FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/**
 * Creates the runs of waiting starts. A lane has room if its policy allows another live run. While a lane has room, creates the run of the
 * start that has waited longest in it. After a failure, the next round continues with this lane. Returns how many lanes had room. `failed`:
 * the starts that failed in earlier rounds.
 */
export async function startWaiting(
  deps: StartDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<number> {
  return await sweepPages({
    firstPage: () => deps.db.query(findStartable),
    pageAfter: (id) => deps.db.query(findNextStartable, [id]),
    pageSize,
    idOf: ({ id }) => id,
    work: async ({ id, automation_uid: uid, schedule_id: scheduleId, lane }) => {
      const of: Lane = { kind: uid === null ? 'schedule' : 'automation', owner: uid ?? scheduleId ?? '', lane };
      try {
        while (await deps.db.transaction((tx) => startOldest(deps, tx, of)));
      } catch (error) {
        if (error instanceof StoreUnavailable || !(await deps.db.transaction((tx) => giveUp(tx, id)))) throw error;
      }
    },
    onFailure: ({ automation_uid, schedule_id }, error) =>
      deps.executionDeps.log.error(
        { err: error, ...(automation_uid ? { automation_id: automation_uid } : { schedule: schedule_id }) },
        'a start that waits is tried again later',
      ),
    failed,
    signal,
  });
}

/** Fails a start that could not be prepared for a day, and records this in the log of the webhook. Returns whether it was so old. */
async function giveUp(tx: Queryable, id: string): Promise<boolean> {
  const failed = await failOldStart(tx, id);
  if (failed?.delivery_id && failed.automation_uid !== null)
    await noteLaterOutcome(tx, failed.delivery_id, {
      automation_id: failed.automation_uid,
      matched: true,
      reason: failed.reason,
    });
  return failed !== undefined;
}

/** The locked owner of waiting starts, and its row. */
interface Locked {
  readonly owner: Owner;
  readonly automation?: AutomationRow;
  readonly schedule?: ScheduleRow;
}

/**
 * Locks the owner of a lane. Returns null if another transaction has locked the owner, if the owner was deleted, or if it is a paused
 * schedule.
 */
async function lockOwner(tx: Queryable, { kind, owner: id }: Lane): Promise<Locked | null> {
  const schedules = kind === 'schedule' ? await tx.query(lockSchedule, [id]) : [];
  const automations = kind === 'automation' ? await tx.query(lockAutomation, [id]) : [];
  const owner = (await readOwners(tx, schedules, automations)).get(id);
  const [automation] = automations;
  const [schedule] = schedules;
  return owner ? { owner, ...(automation ? { automation } : {}), ...(schedule ? { schedule } : {}) } : null;
}

/** Settles the start that has waited longest in a lane. Returns whether the next waiting start of the lane may be tried at once. */
async function startOldest(deps: StartDeps, tx: Queryable, lane: Lane): Promise<boolean> {
  const locked = await lockOwner(tx, lane);
  if (!locked) return false;
  const waiting = await lockOldestWaiting(tx, lane);
  if (!waiting) return false;
  const started = await startUnlessFull(deps, tx, locked, lane, waiting);
  if (!started) return false;
  await writeRuns(tx, runsOf([started]));
  await settleStart(tx, waiting.id, outcomeOf(started));
  await noteLater(tx, locked, waiting, started);
  return started.outcome === 'started' || started.outcome === 'skipped';
}

/** Returns the outcome of a waiting start; null if its lane has no room. Applies the policy if this was not done yet. */
async function startUnlessFull(
  deps: StartDeps,
  tx: Queryable,
  { owner, automation }: Locked,
  lane: Lane,
  waiting: WaitingStart,
): Promise<Started | null> {
  if (owner.disabled !== null)
    return { outcome: 'skipped', reason: 'the automation was disabled while this start waited' };
  const limit = liveLimitOf(owner);
  // Count the live runs again now that the owner is locked, because another process may have started a run.
  const [{ live } = { live: 0 }] = limit === null ? [] : await readLoads(tx, [lane]);
  if (!waiting.undecided && limit !== null && live >= limit) return null;
  const decision = waiting.undecided ? decide(owner, { ...noLoad, live }) : startNow;
  if (decision.kind === 'skip') return { outcome: 'skipped', reason: decision.reason };
  if (decision.kind === 'wait') return { outcome: 'waiting', reason: decision.reason };
  const over = await whyStartIsOver(tx, owner.owner, waiting);
  if (over !== undefined) return { outcome: 'skipped', reason: over };
  const event = await eventOf(tx, automation, waiting);
  if (typeof event === 'string') return { outcome: 'skipped', reason: event };
  return await prepareStart(deps, tx, { owner, event }, decision.cancelsPrevious);
}

const startNow: Decision = { kind: 'start', cancelsPrevious: false };

/** Returns the event of a waiting start, or a text that says why the event cannot start a run any more. */
async function eventOf(
  tx: Queryable,
  automation: AutomationRow | undefined,
  { schedule_id: scheduleId, webhook_uid: webhookUid, delivery_id: deliveryId, task_move: move }: WaitingStart,
): Promise<EventOfRun | string> {
  if (scheduleId !== null) {
    const found = await readScheduleOfStart(tx, scheduleId);
    if (!found) return 'the schedule was deleted while its fire waited';
    return { kind: 'time', schedule: found.schedule, isOwn: found.automationUid === (automation?.uid ?? null) };
  }
  if (move !== null) return { kind: 'move', move };
  if (!automation || webhookUid === null || deliveryId === null) throw new Error('a start is for no event');
  const { team_id: teamId, factory_uid: factoryUid } = automation;
  const webhook = await readWebhook(tx, { teamId, factoryUid, webhookUid });
  if (!webhook) return 'the webhook was deleted while the delivery waited';
  const delivery = await readWebhookDelivery(tx, webhookUid, deliveryId);
  if (!delivery?.payload) return 'the payload was deleted while the delivery waited';
  return {
    kind: 'delivery',
    delivery: {
      deliveryId,
      webhookUid,
      webhookName: webhook.name,
      body: delivery.payload,
      event: delivery.event,
      sender: delivery.sender,
    },
  };
}

/** Records the outcome of a start that waited: in the row of the automation, in the row of the schedule, and in the log of the webhook. */
async function noteLater(
  tx: Queryable,
  { owner, automation, schedule }: Locked,
  { schedule_id: scheduleId, delivery_id: deliveryId, undecided }: WaitingStart,
  started: Started,
): Promise<void> {
  const counted = resultOf(started, countsPassing.automation);
  if (automation && counted !== undefined) await countNow(tx, automation, [counted]);
  const ofSchedule = resultOf(started, countsPassing.schedule);
  const automationUid = automation?.uid ?? null;
  if (scheduleId !== null && ofSchedule !== undefined)
    if (await recordLaterStart(tx, { scheduleId, automationUid }, ofSchedule))
      await skipWaitingStarts(tx, [scheduleId]);
  if (started.outcome === 'failed') {
    const of = automation ? { automation } : schedule && { schedule };
    const notice = of && noticeOfMissed(of, started.reason);
    if (notice) await tx.query(notice.statement, notice.values);
  }
  if (deliveryId === null) return;
  // If the policy was applied only now, the log shows its decision as if it had been applied when the delivery arrived.
  const prefix =
    undecided && started.outcome !== 'started'
      ? { skipped: 'skipped: ', waiting: 'waits: ', failed: '' }[started.outcome]
      : '';
  const became = started.outcome === 'started' ? { run_id: started.run.run.id } : { reason: prefix + started.reason };
  await noteLaterOutcome(tx, deliveryId, { automation_id: owner.owner, matched: true, ...became });
}
