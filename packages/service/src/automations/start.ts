/** Starts the runs of the automations that a delivery matches. */
import type { AutomationOutcome } from '@runyard/contract/webhooks';
import type { SubmitDeps } from '../runs/submit/submit.ts';
import type { Queryable } from '../store/database/database.ts';
import { defineStatement, text } from '../store/database/statement.ts';
import type { AcceptedDelivery, StartAutomations } from '../webhooks/ingest/start-automations.ts';
import { type AutomationRow, automationColumns, automationRow } from './automation-row.ts';
import { disabledReason } from './failures.ts';
import { laneOf } from './lane.ts';
import { matcherOf } from './match.ts';
import { type Spawn, spawner } from './spawn.ts';
import { decideStart, insertStart } from './starts.ts';

/** Reads the automations that a webhook feeds, and keeps them from being deleted. $3: whether GitHub sends to it. */
const readFed = defineStatement({
  name: 'read_automations_of_webhook',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.factory_uid = $1 AND EXISTS (
      SELECT FROM jsonb_array_elements(a.triggers) t WHERE
        t ->> 'provider' = 'webhook' AND (t -> 'filter' -> 'webhook_ids' ? $2 OR t -> 'filter' -> 'webhook_ids' -> 'in' ? $2)
        OR t ->> 'provider' = 'github' AND $3)
    ORDER BY a.uid FOR KEY SHARE OF a`,
  row: automationRow,
});

/**
 * Of two deliveries at once, the second one counts the run of the first. Every transaction locks in the order of the UIDs. Automations
 * that allow overlap are not locked, so that their deliveries do not wait for one another.
 */
const lockOverlap = defineStatement({
  name: 'lock_overlap_of_automation',
  text: 'SELECT uid FROM automations WHERE uid = $1 FOR NO KEY UPDATE',
  row: { uid: text() },
});

/** Returns the function that starts the runs of a delivery, all of them in its transaction. */
export function startAutomationsWith(deps: SubmitDeps): StartAutomations {
  return async (tx, delivery) => {
    const rows = await tx.query(readFed, [delivery.factoryUid, delivery.webhookUid, delivery.scheme === 'github']);
    if (rows.length === 0) return { runs: [], outcomes: [] };
    const spawn = await spawner(deps, tx, rows);
    const match = matcherOf(delivery);
    const outcomes: AutomationOutcome[] = [];
    for (const row of rows) outcomes.push(await outcomeOf(tx, row, delivery, match, spawn));
    return { runs: outcomes.flatMap(({ run_id: runId }) => runId ?? []), outcomes };
  };
}

async function outcomeOf(
  tx: Queryable,
  row: AutomationRow,
  delivery: AcceptedDelivery,
  match: ReturnType<typeof matcherOf>,
  spawn: Spawn,
): Promise<AutomationOutcome> {
  const automation_id = row.uid;
  if (!row.enabled) return { automation_id, matched: false, reason: disabledReason(row) };
  const matching = match(row);
  if (!matching.matched) return { automation_id, ...matching };
  const lane = laneOf(row, delivery.payload);
  if (row.overlap !== 'allow') await tx.query(lockOverlap, [row.uid]);
  const decision = await decideStart(tx, row, lane);
  switch (decision.kind) {
    case 'skip':
      return { automation_id, matched: true, reason: `skipped: ${decision.reason}` };
    case 'wait':
      await insertStart(tx, row.uid, delivery, { lane, runId: null });
      return { automation_id, matched: true, reason: `waits: ${decision.reason}` };
    case 'start': {
      const spawned = await spawn(row, { kind: 'delivery', delivery });
      if (spawned.kind === 'failed') return { automation_id, matched: true, reason: spawned.reason };
      const { runId } = spawned;
      await insertStart(tx, row.uid, delivery, { lane, runId, cancelsPrevious: decision.cancelsPrevious });
      return { automation_id, matched: true, run_id: runId };
    }
  }
}
