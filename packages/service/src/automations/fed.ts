/** The automations that webhooks feed. */
import type { SignatureSchemeName } from '@runyard/contract/webhooks';
import type { Queryable } from '../store/database/database.ts';
import { defineStatement, type RowOf, text } from '../store/database/statement.ts';
import { selectsWebhook } from '../webhooks/ingest/insert-deliveries.ts';
import { automationColumns, automationRow } from './automation-row.ts';

/** Keeps the automations from being deleted until the transaction ends. $3: whether GitHub sends to the webhook. */
const readFed = defineStatement({
  name: 'read_automations_of_webhooks',
  text: `
    SELECT ${automationColumns}, w.uid AS webhook_uid
    FROM unnest($1::text[], $2::text[], $3::boolean[]) AS w (uid, factory_uid, is_github)
    JOIN automations a ON a.factory_uid = w.factory_uid
    WHERE ${selectsWebhook('w.uid', 'w.is_github')}
    ORDER BY a.uid, w.uid FOR KEY SHARE OF a`,
  row: { ...automationRow, webhook_uid: text() },
});

/** An automation, and the webhook that feeds it. */
export type FedAutomation = RowOf<typeof readFed>;

/** A webhook that feeds automations. */
export interface FeedingWebhook {
  readonly webhookUid: string;
  readonly factoryUid: string;
  readonly scheme: SignatureSchemeName | null;
}

/** Returns the automations with a trigger that selects one of the webhooks, once for each webhook. */
export function readFedBy(tx: Queryable, feeding: readonly FeedingWebhook[]): Promise<FedAutomation[]> {
  const webhooks = [...new Map(feeding.map((each) => [each.webhookUid, each])).values()];
  return tx.query(readFed, [
    webhooks.map(({ webhookUid }) => webhookUid),
    webhooks.map(({ factoryUid }) => factoryUid),
    webhooks.map(({ scheme }) => scheme === 'github'),
  ]);
}
