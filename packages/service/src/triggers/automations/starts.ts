/**
 * The starts of automations. A start is one event, a delivery or a fire, together with the run that it started or will
 * start.
 */

import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';
import { type Decision, decide } from '../schedules/decide.ts';
import type { AutomationRow } from './automation-row.ts';
import { readLoad } from './load.ts';

const insert = defineStatement({
  name: 'insert_start_of_automation',
  text: `
    INSERT INTO automation_starts (automation_uid, webhook_uid, delivery_id, fire_id, lane, run_id, cancels_previous)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
  row: { id: uuid },
});

/** The event that a start is for. */
export type EventOfStart =
  | { readonly webhookUid: string; readonly deliveryId: string }
  /** A fire of a schedule trigger. */
  | { readonly fireId: string };

/** A start. `runId` is null while it waits for the end of another run. */
export interface NewStart {
  readonly lane: string | null;
  readonly runId: string | null;
  readonly cancelsPrevious?: boolean;
}

export async function insertStart(
  tx: Queryable,
  automationUid: string,
  event: EventOfStart,
  { lane, runId, cancelsPrevious = false }: NewStart,
): Promise<void> {
  const ofEvent = 'fireId' in event ? [null, null, event.fireId] : [event.webhookUid, event.deliveryId, null];
  await tx.query(insert, [automationUid, ...ofEvent, lane, runId, cancelsPrevious]);
}

/** Decides by the overlap policy of an automation, which the transaction has locked unless it allows overlap. */
export async function decideStart(
  tx: Queryable,
  { uid, overlap }: Pick<AutomationRow, 'uid' | 'overlap'>,
  lane: string | null,
): Promise<Decision> {
  const load = overlap === 'allow' ? { live: 0, waiting: 0 } : await readLoad(tx, uid, lane);
  return decide({ overlap, max_live_runs: null }, load);
}
