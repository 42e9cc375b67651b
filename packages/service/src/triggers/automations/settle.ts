/**
 * Finishes the work that overlap policies leave: starts deliveries and fires that wait for the end of a run, and
 * cancels runs that a newer run replaces.
 */

import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, type RowOf, text, uuid } from '../../platform/store/database/statement.ts';
import { type FailedRows, sweepPages } from '../../platform/store/database/sweep.ts';
import { cancelRun } from '../../runs/executions/cancel/cancel.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { readScheduleOfFire } from '../schedules/of-automation.ts';
import { type SettledFire, settleFire } from '../schedules/settle.ts';
import { readWebhookDelivery } from '../webhooks/log/deliveries.ts';
import { noteLaterOutcome } from '../webhooks/log/note-later.ts';
import { readWebhook } from '../webhooks/webhooks.ts';
import { type AutomationRow, automationColumns, automationRow } from './automation-row.ts';
import { liveIn, readLiveRunsBefore, readLoad } from './load.ts';
import { type EventOfRun, type Spawned, spawner } from './spawn.ts';

export interface SettleDeps extends SubmitDeps {
  readonly db: Database;
}

/** Starts that one query reads. */
const pageSize = 100;

/** SQL of a page of waiting starts in lanes without a live run. A later change of the policy does not make them wait longer. */
const startable = (behind: string): string => `
    SELECT s.id, s.automation_uid FROM automation_starts s JOIN automations a ON a.uid = s.automation_uid
    WHERE ${behind} s.run_id IS NULL
      AND (NOT a.enabled OR a.overlap = 'allow' OR NOT EXISTS (SELECT ${liveIn('s.automation_uid', 's.lane')}))
    ORDER BY s.id LIMIT ${pageSize}`;

/** Finds waiting starts in lanes without a live run. */
export const findStartable = defineStatement({
  name: 'find_startable_starts_of_automations',
  text: startable(''),
  row: { id: uuid, automation_uid: text() },
});

const findNextStartable = defineStatement({
  name: 'find_next_startable_starts_of_automations',
  text: startable('s.id > $1 AND'),
  row: { id: uuid, automation_uid: text() },
});

const lockAutomation = defineStatement({
  name: 'lock_automation_with_waiting_start',
  text: `SELECT ${automationColumns} FROM automations a WHERE a.uid = $1 FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/** Only if it is the oldest of its lane. */
const readWaiting = defineStatement({
  name: 'read_waiting_start_of_automation',
  text: `
    SELECT s.webhook_uid, s.delivery_id, s.fire_id, s.lane FROM automation_starts s WHERE s.id = $1 AND s.run_id IS NULL AND NOT EXISTS (
      SELECT FROM automation_starts o WHERE o.automation_uid = s.automation_uid AND o.lane IS NOT DISTINCT FROM s.lane
        AND o.run_id IS NULL AND o.id < s.id) FOR UPDATE`,
  row: {
    webhook_uid: nullable(text()),
    delivery_id: nullable(uuid),
    fire_id: nullable(uuid),
    lane: nullable(text()),
  },
});

const setRun = defineStatement({
  name: 'set_run_of_waiting_start',
  text: 'UPDATE automation_starts SET run_id = $2 WHERE id = $1 AND run_id IS NULL RETURNING id',
  row: { id: uuid },
});

const giveUp = defineStatement({
  name: 'delete_waiting_start',
  text: 'DELETE FROM automation_starts WHERE id = $1 AND run_id IS NULL RETURNING id',
  row: { id: uuid },
});

/** Starts waiting deliveries and fires: the oldest of each lane without a live run. `failed`: those that failed in earlier rounds. */
export async function startWaiting(
  deps: SettleDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<void> {
  await sweepPages({
    firstPage: () => deps.db.query(findStartable),
    pageAfter: (id) => deps.db.query(findNextStartable, [id]),
    pageSize,
    idOf: ({ id }) => id,
    work: ({ id, automation_uid: uid }) => deps.db.transaction((tx) => startOne(deps, tx, uid, id)),
    onFailure: logFailure(deps),
    failed,
    signal,
  });
}

interface OfAutomation {
  readonly automation_uid: string;
}

/** Returns the function that logs a failure of one automation. A later round tries it again. */
const logFailure =
  (deps: SettleDeps) =>
  ({ automation_uid: uid }: OfAutomation, error: unknown): void =>
    deps.executionDeps.log.error({ err: error, automation_id: uid }, 'an automation is tried again later');

async function startOne(deps: SettleDeps, tx: Queryable, automationUid: string, startId: string): Promise<void> {
  const [automation] = await tx.query(lockAutomation, [automationUid]);
  if (!automation) return;
  const [waiting] = await tx.query(readWaiting, [startId]);
  if (!waiting) return;
  const { lane } = waiting;
  // Counted again under the lock, because another process may have started a run.
  const { live } = await readLoad(tx, automationUid, lane);
  if (automation.enabled && automation.overlap !== 'allow' && live > 0) return;
  const spawned = await spawnWaiting(deps, tx, automation, waiting);
  if (spawned.kind === 'started') await tx.query(setRun, [startId, spawned.runId]);
  else await tx.query(giveUp, [startId]);
  if (waiting.fire_id !== null) await settleFire(tx, waiting.fire_id, settledBy(spawned));
  if (waiting.delivery_id === null) return;
  const became = spawned.kind === 'started' ? { run_id: spawned.runId } : { reason: spawned.reason };
  await noteLaterOutcome(tx, waiting.delivery_id, { automation_id: automationUid, matched: true, ...became });
}

const settledBy = (spawned: WaitingSpawned): SettledFire =>
  spawned.kind === 'started'
    ? { outcome: 'started', runId: spawned.runId }
    : { outcome: spawned.kind, reason: spawned.reason };

/** `skipped`: the function tried no run. */
type WaitingSpawned = Spawned | { readonly kind: 'skipped'; readonly reason: string };

type Waiting = RowOf<typeof readWaiting>;

async function spawnWaiting(
  deps: SettleDeps,
  tx: Queryable,
  automation: AutomationRow,
  waiting: Waiting,
): Promise<WaitingSpawned> {
  if (!automation.enabled) return { kind: 'skipped', reason: 'the automation was disabled while this waited' };
  const event = await eventOf(tx, automation, waiting);
  if (typeof event === 'string') return { kind: 'skipped', reason: event };
  const spawn = await spawner(deps, tx, [automation]);
  return await spawn(automation, event);
}

/** Returns the waiting event, or why it cannot start a run any more. */
async function eventOf(
  tx: Queryable,
  { team_id: teamId, factory_uid: factoryUid }: AutomationRow,
  { webhook_uid: webhookUid, delivery_id: deliveryId, fire_id: fireId }: Waiting,
): Promise<EventOfRun | string> {
  if (fireId !== null) {
    const schedule = await readScheduleOfFire(tx, fireId);
    return schedule ? { kind: 'time', schedule } : 'the schedule was deleted while its fire waited';
  }
  if (webhookUid === null || deliveryId === null) throw new Error('a start is for no event');
  const webhook = await readWebhook(tx, { teamId, factoryUid, webhookUid });
  if (!webhook) return 'the webhook was deleted while the delivery waited';
  const delivery = await readWebhookDelivery(tx, webhookUid, deliveryId);
  if (!delivery?.payload) return 'the payload was deleted while the delivery waited';
  return {
    kind: 'delivery',
    delivery: { deliveryId, webhookUid, webhookName: webhook.name, body: delivery.payload, event: delivery.event },
  };
}

/** Finds starts whose runs replace older ones. */
export const findCancelling = defineStatement({
  name: 'find_starts_that_cancel_runs',
  text: `SELECT id, automation_uid, lane FROM automation_starts WHERE cancels_previous ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, automation_uid: text(), lane: nullable(text()) },
});

const findNextCancelling = defineStatement({
  name: 'find_next_starts_that_cancel_runs',
  text: `SELECT id, automation_uid, lane FROM automation_starts WHERE cancels_previous AND id > $1 ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, automation_uid: text(), lane: nullable(text()) },
});

const endCancelling = defineStatement({
  name: 'end_cancelling_of_start',
  text: 'UPDATE automation_starts SET cancels_previous = false WHERE id = $1 AND cancels_previous RETURNING id',
  row: { id: uuid },
});

/** Cancels live runs that a newer run replaces. Each process does this; cancelling twice changes nothing. */
export async function cancelPrevious(
  deps: SettleDeps,
  failed: FailedRows = new Map(),
  signal?: AbortSignal,
): Promise<void> {
  const cancel = async ({ id, automation_uid: uid, lane }: RowOf<typeof findCancelling>) => {
    let isPending = false;
    for (const runId of await readLiveRunsBefore(deps.db, uid, lane, id))
      isPending = (await cancelRun(deps.executionDeps, runId)) === 'pending' || isPending;
    // The next round tries a PENDING run again.
    if (!isPending) await deps.db.query(endCancelling, [id]);
  };
  await sweepPages({
    firstPage: () => deps.db.query(findCancelling),
    pageAfter: (id) => deps.db.query(findNextCancelling, [id]),
    pageSize,
    idOf: ({ id }) => id,
    work: cancel,
    onFailure: logFailure(deps),
    failed,
    signal,
  });
}
