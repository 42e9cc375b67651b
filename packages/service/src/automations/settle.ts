/** Work that the overlap policies leave behind: deliveries that wait for the end of a run, and runs that are cancelled for another. */
import { cancelRun } from '../executions/cancel/cancel.ts';
import { readFactory } from '../factories/factories.ts';
import type { SubmitDeps } from '../runs/submit/submit.ts';
import type { Database, Queryable } from '../store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../store/database/statement.ts';
import { StoreUnavailable } from '../store/database/unavailable.ts';
import { readWebhookDelivery } from '../webhooks/log/deliveries.ts';
import { noteLaterOutcome } from '../webhooks/log/note-later.ts';
import { readWebhook } from '../webhooks/webhooks.ts';
import { type AutomationRow, automationColumns, automationRow } from './automation-row.ts';
import { liveIn, readLiveRunsBefore, readLoad } from './load.ts';
import { type Spawned, spawner } from './spawn.ts';

export interface SettleDeps extends SubmitDeps {
  readonly db: Database;
}

/** Starts that one round looks at. */
const perRound = 100;

/** Waiting starts of lanes without a live run. A policy that has changed since does not make them wait longer. */
const findStartable = defineStatement({
  name: 'find_startable_starts_of_automations',
  text: `
    SELECT s.id, s.automation_uid FROM automation_starts s JOIN automations a ON a.uid = s.automation_uid
    WHERE s.run_id IS NULL AND (NOT a.enabled OR a.overlap = 'allow' OR NOT EXISTS (SELECT ${liveIn('s.automation_uid', 's.lane')}))
    ORDER BY s.id LIMIT ${perRound}`,
  row: { id: uuid, automation_uid: text() },
});

const lockAutomation = defineStatement({
  name: 'lock_automation_with_waiting_start',
  text: `SELECT ${automationColumns} FROM automations a WHERE a.uid = $1 FOR NO KEY UPDATE SKIP LOCKED`,
  row: automationRow,
});

/** Only while it is the oldest of its lane. */
const readWaiting = defineStatement({
  name: 'read_waiting_start_of_automation',
  text: `
    SELECT s.webhook_uid, s.delivery_id, s.lane FROM automation_starts s WHERE s.id = $1 AND s.run_id IS NULL AND NOT EXISTS (
      SELECT FROM automation_starts o WHERE o.automation_uid = s.automation_uid AND o.lane IS NOT DISTINCT FROM s.lane
        AND o.run_id IS NULL AND o.id < s.id) FOR UPDATE`,
  row: { webhook_uid: text(), delivery_id: uuid, lane: nullable(text()) },
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

/** Starts deliveries that waited, the oldest of each lane without a live run. */
export async function startWaiting(deps: SettleDeps): Promise<void> {
  for (const { id, automation_uid: uid } of await deps.db.query(findStartable))
    await alone(deps, uid, () => deps.db.transaction((tx) => startOne(deps, tx, uid, id)));
}

/** Logs what goes wrong with one automation. It is tried again in the next round, and the other automations do not wait for it. */
async function alone(deps: SettleDeps, automationUid: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    deps.executionDeps.log.error({ err: error, automation_id: automationUid }, 'an automation is tried again later');
  }
}

async function startOne(deps: SettleDeps, tx: Queryable, automationUid: string, startId: string): Promise<void> {
  const [automation] = await tx.query(lockAutomation, [automationUid]);
  if (!automation) return;
  const [waiting] = await tx.query(readWaiting, [startId]);
  if (!waiting) return;
  const { webhook_uid: webhookUid, delivery_id: deliveryId, lane } = waiting;
  // Counted again under the lock: another process may have started a run.
  const { live } = await readLoad(tx, automationUid, lane);
  if (automation.enabled && automation.overlap !== 'allow' && live > 0) return;
  const spawned = await spawnWaiting(deps, tx, automation, { webhookUid, deliveryId });
  const outcome = { automation_id: automationUid, matched: true };
  if (spawned.kind === 'started') {
    await tx.query(setRun, [startId, spawned.runId]);
    await noteLaterOutcome(tx, deliveryId, { ...outcome, run_id: spawned.runId });
  } else {
    await tx.query(giveUp, [startId]);
    await noteLaterOutcome(tx, deliveryId, { ...outcome, reason: spawned.reason });
  }
}

async function spawnWaiting(
  deps: SettleDeps,
  tx: Queryable,
  automation: AutomationRow,
  { webhookUid, deliveryId }: { readonly webhookUid: string; readonly deliveryId: string },
): Promise<Spawned> {
  const failed = (reason: string): Spawned => ({ kind: 'failed', reason });
  if (!automation.enabled) return failed('the automation was disabled while the delivery waited');
  const { team_id: teamId, factory_uid: factoryUid } = automation;
  const webhook = await readWebhook(tx, { teamId, factoryUid, webhookUid });
  if (!webhook) return failed('the webhook was deleted while the delivery waited');
  const delivery = await readWebhookDelivery(tx, webhookUid, deliveryId);
  if (!delivery?.payload) return failed('the payload was deleted while the delivery waited');
  const factory = await readFactory(tx, teamId, factoryUid);
  const spawn = await spawner(deps, tx, [automation]);
  return await spawn(automation, factory?.agent_defaults ?? {}, {
    deliveryId,
    webhookUid,
    webhookName: webhook.name,
    body: delivery.payload,
  });
}

const findCancelling = defineStatement({
  name: 'find_starts_that_cancel_runs',
  text: `SELECT id, automation_uid, lane FROM automation_starts WHERE cancels_previous ORDER BY id LIMIT ${perRound}`,
  row: { id: uuid, automation_uid: text(), lane: nullable(text()) },
});

const endCancelling = defineStatement({
  name: 'end_cancelling_of_start',
  text: 'UPDATE automation_starts SET cancels_previous = false WHERE id = $1 AND cancels_previous RETURNING id',
  row: { id: uuid },
});

/** Cancels the live runs in whose place a newer one was started. Each process does this: what is done twice changes nothing. */
export async function cancelPrevious(deps: SettleDeps): Promise<void> {
  for (const { id, automation_uid: uid, lane } of await deps.db.query(findCancelling))
    await alone(deps, uid, async () => {
      let isPending = false;
      for (const runId of await readLiveRunsBefore(deps.db, uid, lane, id))
        isPending = (await cancelRun(deps.executionDeps, runId)) === 'pending' || isPending;
      // A run that is PENDING is tried again in the next round.
      if (!isPending) await deps.db.query(endCancelling, [id]);
    });
}
