/** Starts the runs of the automations that deliveries match. */
import type { AutomationOutcome } from '@runyard/contract/webhooks';
import type { SubmitDeps } from '../runs/submit/submit.ts';
import type { Queryable } from '../store/database/database.ts';
import { oneByOne } from '../store/database/one-by-one.ts';
import { defineStatement, text } from '../store/database/statement.ts';
import type { AcceptedDelivery, StartAutomations } from '../webhooks/ingest/start-automations.ts';
import { disabledReason } from './failures.ts';
import { type FedAutomation, readFedBy } from './fed.ts';
import { laneOf } from './lane.ts';
import { matcherOf } from './match.ts';
import { type Spawn, spawner } from './spawn.ts';
import { makeStartBatch, type StartBatch } from './start-batch.ts';
import { decideStart } from './starts.ts';

/**
 * Of two deliveries at once, the second one counts the run of the first. Every transaction locks in the order of the UIDs. Automations
 * that allow overlap are not locked, so that their deliveries do not wait for one another.
 */
const lockOverlaps = defineStatement({
  name: 'lock_overlaps_of_automations',
  text: 'SELECT uid FROM automations WHERE uid = ANY($1::text[]) ORDER BY uid FOR NO KEY UPDATE',
  row: { uid: text() },
});

/** An automation, and what it makes of a delivery before its overlap policy. */
interface Matched {
  readonly delivery: AcceptedDelivery;
  readonly row: FedAutomation;
  /** Why it does not match; undefined: it does. */
  readonly mismatch?: string;
}

function matchAll(delivery: AcceptedDelivery, fed: readonly FedAutomation[]): Matched[] {
  const match = matcherOf(delivery);
  return fed
    .filter((row) => row.webhook_uid === delivery.webhookUid)
    .map((row) => {
      if (!row.enabled) return { delivery, row, mismatch: disabledReason(row) };
      const matching = match(row);
      return { delivery, row, ...(matching.matched ? {} : { mismatch: matching.reason }) };
    });
}

/** Returns the function that starts the runs of deliveries, all of them in its transaction. */
export function startAutomationsWith(deps: SubmitDeps): StartAutomations {
  return async (tx, deliveries) => {
    const fed = await readFedBy(tx, deliveries);
    if (fed.length === 0) return deliveries.map(() => ({ runs: [], outcomes: [] }));
    const matched = deliveries.map((delivery) => matchAll(delivery, fed));
    const all = matched.flat().filter(({ mismatch }) => mismatch === undefined);
    const exclusive = all.filter(({ row }) => row.overlap !== 'allow').map(({ row }) => row.uid);
    if (exclusive.length > 0) await tx.query(lockOverlaps, [[...new Set(exclusive)]]);
    const batch = makeStartBatch(tx);
    const rows = all.map(({ row }) => row);
    const spawn = rows.length > 0 ? await spawner(deps, oneByOne(tx), rows, batch) : undefined;
    const outcomes = await outcomesOf(tx, matched.flat(), batch, spawn);
    await batch.end();
    return matched.map((each) => {
      const own = each.flatMap((one) => outcomes.get(one) ?? []);
      return { runs: own.flatMap(({ run_id: runId }) => runId ?? []), outcomes: own };
    });
  };
}

/** Returns the outcome of each. Runs that may overlap are prepared at the same time, so that their files are stored together. */
async function outcomesOf(
  tx: Queryable,
  all: readonly Matched[],
  batch: StartBatch,
  spawn: Spawn | undefined,
): Promise<Map<Matched, AutomationOutcome>> {
  const outcomes = new Map<Matched, AutomationOutcome>();
  const take = async (one: Matched) => void outcomes.set(one, await outcomeOf(tx, one, batch, spawn));
  // All are awaited also after a failure: none may use the transaction after its end.
  const taken = await Promise.allSettled(all.filter(({ row }) => row.overlap === 'allow').map(take));
  for (const each of taken) if (each.status === 'rejected') throw each.reason;
  for (const one of all) if (one.row.overlap !== 'allow') await take(one);
  return outcomes;
}

async function outcomeOf(
  tx: Queryable,
  { delivery, row, mismatch }: Matched,
  batch: StartBatch,
  spawn: Spawn | undefined,
): Promise<AutomationOutcome> {
  const automation_id = row.uid;
  if (mismatch !== undefined || !spawn)
    return { automation_id, matched: false, ...(mismatch ? { reason: mismatch } : {}) };
  const lane = laneOf(row, delivery.payload);
  // The count includes the runs that were started for earlier deliveries of this transaction.
  if (row.overlap !== 'allow') await batch.flush();
  const decision = await decideStart(tx, row, lane);
  const { webhookUid, deliveryId } = delivery;
  const start = (runId: string | null, cancelsPrevious: boolean) =>
    batch.starts.push({ automationUid: row.uid, webhookUid, deliveryId, lane, runId, cancelsPrevious });
  switch (decision.kind) {
    case 'skip':
      return { automation_id, matched: true, reason: `skipped: ${decision.reason}` };
    case 'wait':
      start(null, false);
      return { automation_id, matched: true, reason: `waits: ${decision.reason}` };
    case 'start': {
      const spawned = await spawn(row, { kind: 'delivery', delivery });
      if (spawned.kind === 'failed') return { automation_id, matched: true, reason: spawned.reason };
      start(spawned.runId, decision.cancelsPrevious);
      return { automation_id, matched: true, run_id: spawned.runId };
    }
  }
}
