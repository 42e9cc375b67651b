/** Starts the runs of the automations that deliveries match. */
import type { AutomationOutcome } from '@runyard/contract/webhooks';
import type { Queryable } from '../../platform/store/database/database.ts';
import { readingOnce } from '../../platform/store/database/reading-once.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';
import type { Transaction } from '../../platform/store/database/transaction.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import type { DeliveryRows } from '../webhooks/ingest/delivery-rows.ts';
import type { AcceptedDelivery, StartAutomations } from '../webhooks/ingest/start-automations.ts';
import type { AutomationRow } from './automation-row.ts';
import { disabledReason, noteResults, type SpawnFailure } from './failures.ts';
import { type FedAutomation, readFedBy } from './fed.ts';
import { laneOf } from './lane.ts';
import { matcherOf } from './match.ts';
import { type Spawn, type Spawned, spawner } from './spawn.ts';
import { makeStartBatch, type StartBatch } from './start-batch.ts';
import { decideStart } from './starts.ts';

/**
 * Of two deliveries at once, the second counts the run of the first. Every transaction locks in the order of the UIDs.
 * Automations that allow overlap are not locked, so that their deliveries do not wait for one another.
 */
const lockOverlaps = defineStatement({
  name: 'lock_overlaps_of_automations',
  text: 'SELECT uid FROM automations WHERE uid = ANY($1::text[]) ORDER BY uid FOR NO KEY UPDATE',
  row: { uid: text() },
});

/** An automation, and how it handles a delivery before its overlap policy applies. */
interface Matched {
  readonly delivery: AcceptedDelivery;
  readonly row: FedAutomation;
  /** Why it does not match; undefined: it does. */
  readonly mismatch?: string;
}

function matchAll(delivery: AcceptedDelivery, fed: readonly FedAutomation[]): Matched[] {
  const match = matcherOf(delivery);
  return fed
    .filter((row) => row.webhook_uids.includes(delivery.webhookUid))
    .map((row) => {
      if (!row.enabled) return { delivery, row, mismatch: disabledReason(row) };
      const matching = match(row);
      return { delivery, row, ...(matching.matched ? {} : { mismatch: matching.reason }) };
    });
}

/** Returns the function that starts the runs of deliveries, all of them in its transaction. */
export function startAutomationsWith(deps: SubmitDeps): StartAutomations {
  return async (tx, feeding) => {
    const fed = await readFedBy(tx, feeding);
    return async (deliveries, rows) =>
      fed.length === 0 ? deliveries.map(() => false) : await startFed(deps, tx, fed, deliveries, rows);
  };
}

async function startFed(
  deps: SubmitDeps,
  tx: Transaction,
  fed: readonly FedAutomation[],
  deliveries: readonly AcceptedDelivery[],
  rows: DeliveryRows,
): Promise<boolean[]> {
  const matched = deliveries.map((delivery) => matchAll(delivery, fed));
  const matches = matched.flat().filter(({ mismatch }) => mismatch === undefined);
  const exclusive = matches.filter(({ row }) => row.overlap !== 'allow').map(({ row }) => row.uid);
  if (exclusive.length > 0) await tx.query(lockOverlaps, [[...new Set(exclusive)]]);
  const batch = makeStartBatch(tx, rows);
  const known = new Map(fed.map((row) => [row.uid, { mayStart: row.may_start, agent: row.agent_of_run }]));
  const nothing = { mayStart: false, agent: null };
  const spawnBatch = { runs: batch.runs, known: ({ uid }: AutomationRow) => known.get(uid) ?? nothing };
  const spawn = await spawner(deps, readingOnce(tx), [], spawnBatch);
  const settled = await settleAll(tx, matched.flat(), batch, spawn);
  batch.finish(
    matched.flatMap((each, index) => {
      const id = deliveries[index]?.deliveryId;
      const outcomes = each.flatMap((one) => settled.get(one)?.outcome ?? []);
      const runs = outcomes.flatMap(({ run_id: runId }) => runId ?? []);
      return id === undefined || outcomes.length === 0 ? [] : [{ id, runs, outcomes }];
    }),
  );
  countResults(tx, settled);
  return matched.map((each) => each.length > 0);
}

/** The outcome of a delivery for an automation, and the run that was tried for it. */
interface Settled {
  readonly outcome: AutomationOutcome;
  readonly spawned?: Spawned;
}

/** Returns the outcomes, in the order of the deliveries. Runs that may overlap are prepared at the same time. */
async function settleAll(
  tx: Queryable,
  matches: readonly Matched[],
  batch: StartBatch,
  spawn: Spawn,
): Promise<Map<Matched, Settled>> {
  const settled = new Map<Matched, Settled>();
  const take = async (one: Matched) => void settled.set(one, await settle(tx, one, batch, spawn));
  // Waits for all of them even after a failure, because none may use the transaction after its end.
  const taken = await Promise.allSettled(matches.filter(({ row }) => row.overlap === 'allow').map(take));
  for (const each of taken) if (each.status === 'rejected') throw each.reason;
  for (const one of matches) if (one.row.overlap !== 'allow') await take(one);
  const inOrder = new Map<Matched, Settled>();
  for (const one of matches) {
    const own = settled.get(one);
    if (own) inOrder.set(one, own);
  }
  return inOrder;
}

/**
 * Counts the failures of each automation in the order of the deliveries, at the end and by UID: every transaction locks
 * the automations in this order.
 */
function countResults(tx: Transaction, settled: ReadonlyMap<Matched, Settled>): void {
  const results = new Map<AutomationRow, (SpawnFailure | undefined)[]>();
  for (const [{ row }, { spawned }] of settled) {
    if (!spawned) continue;
    const own = results.get(row) ?? [];
    own.push(spawned.kind === 'failed' ? spawned : undefined);
    results.set(row, own);
  }
  for (const [row, own] of [...results].sort(([a], [b]) => compareUids(a.uid, b.uid))) noteResults(tx, row, own);
}

const compareUids = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

async function settle(
  tx: Queryable,
  { delivery, row, mismatch }: Matched,
  batch: StartBatch,
  spawn: Spawn,
): Promise<Settled> {
  const automation_id = row.uid;
  if (mismatch !== undefined)
    return { outcome: { automation_id, matched: false, ...(mismatch ? { reason: mismatch } : {}) } };
  const lane = laneOf(row, delivery.payload);
  // The count includes the runs that were started for earlier deliveries of this transaction.
  if (row.overlap !== 'allow') await batch.flush();
  const decision = await decideStart(tx, row, lane);
  const { webhookUid, deliveryId } = delivery;
  const start = (runId: string | null, cancelsPrevious: boolean) =>
    batch.starts.push({ automationUid: row.uid, webhookUid, deliveryId, lane, runId, cancelsPrevious });
  switch (decision.kind) {
    case 'skip':
      return { outcome: { automation_id, matched: true, reason: `skipped: ${decision.reason}` } };
    case 'wait':
      start(null, false);
      return { outcome: { automation_id, matched: true, reason: `waits: ${decision.reason}` } };
    case 'start': {
      const spawned = await spawn(row, { kind: 'delivery', delivery });
      if (spawned.kind === 'failed')
        return { outcome: { automation_id, matched: true, reason: spawned.reason }, spawned };
      start(spawned.runId, decision.cancelsPrevious);
      return { outcome: { automation_id, matched: true, run_id: spawned.runId }, spawned };
    }
  }
}
