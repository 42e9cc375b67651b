/**
 * The one order in which transactions lock a factory and its parts: factory, webhooks by UID, automations by UID, schedules. A delivery
 * locks its webhook, then the automations that it feeds, and takes no lock of the factory. The count of the audit log comes last.
 */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';

const lockWebhooks = defineStatement({
  name: 'lock_webhooks_of_factory',
  text: 'SELECT uid FROM webhooks WHERE factory_uid = $1 ORDER BY uid FOR UPDATE',
  row: { uid: text() },
});

const lockAutomations = defineStatement({
  name: 'lock_automations_of_factory',
  text: 'SELECT uid FROM automations WHERE factory_uid = $1 ORDER BY uid FOR UPDATE',
  row: { uid: text() },
});

/**
 * Locks the webhooks and automations of a factory, which the caller has locked. Call it before the first of several changes: later
 * deliveries wait, and deliveries that have begun end first.
 */
export async function lockPartsOfFactory(tx: Queryable, factoryUid: string): Promise<void> {
  await tx.query(lockWebhooks, [factoryUid]);
  await tx.query(lockAutomations, [factoryUid]);
}
