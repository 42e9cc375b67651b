import type { AutomationOutcome } from '@runyard/contract/webhooks/webhooks';
import type { Queryable, Statement } from '../../../platform/store/database/database.ts';

/** Replaces the outcome of one automation, and adds its run. */
const noteLater: Statement = {
  name: 'note_later_outcome_of_webhook_delivery',
  text: `
    UPDATE webhook_deliveries SET
      runs = CASE WHEN $3::text IS NULL THEN runs ELSE array_append(runs, $3::text) END,
      outcomes = (SELECT coalesce(jsonb_agg(CASE WHEN o ->> 'automation_id' = $2 THEN $4::jsonb ELSE o END), '[]')
        FROM jsonb_array_elements(outcomes) o)
    WHERE id = $1`,
};

/** Records in the log the later outcome of an automation for which the delivery had to wait. */
export async function noteLaterOutcome(tx: Queryable, deliveryId: string, outcome: AutomationOutcome): Promise<void> {
  const { automation_id: automation, run_id: runId = null } = outcome;
  await tx.query(noteLater, [deliveryId, automation, runId, JSON.stringify(outcome)]);
}
