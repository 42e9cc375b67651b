/** Decides which deliveries a transaction takes. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, text } from '../../../platform/store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import type { Identity } from './identity.ts';

/** The rows of the webhooks are the locks of their budgets, taken in one order. */
const lockWebhooks = defineStatement({
  name: 'lock_webhooks_of_deliveries',
  text: `
    WITH locked AS (
      SELECT uid, enabled, version, recent FROM webhooks WHERE uid = ANY ($1::text[]) ORDER BY uid FOR NO KEY UPDATE
    )
    SELECT uid, enabled, version,
      (SELECT count(*) FROM unnest(recent) t WHERE t > clock_timestamp() - interval '1 minute') AS used
    FROM locked`,
  row: { uid: text(), enabled: boolean, version: integer, used: integer },
});

/** A statement of its own after the locks: it sees what transactions wrote for which the locks waited. */
const findAccepted = defineStatement({
  name: 'find_accepted_webhook_deliveries',
  text: `
    SELECT i.n FROM unnest($1::text[], $2::bytea[]) WITH ORDINALITY AS i (webhook_uid, identity_hash, n)
    WHERE (SELECT true FROM webhook_deliveries d WHERE d.webhook_uid = i.webhook_uid AND d.identity_hash = i.identity_hash
      AND d.label = 'ACCEPTED' LIMIT 1) IS TRUE`,
  row: { n: integer },
});

interface Delivery {
  readonly webhook: Pick<KnownWebhook, 'uid' | 'version'>;
  readonly identity: Identity;
}

/** `changed`: the webhook has another version by now. `full`: its budget is used up. */
export type Taken = 'ACCEPTED' | 'DUPLICATE' | 'changed' | 'full';

/**
 * Locks the webhooks of the deliveries until the transaction ends, and decides about each delivery in their order. Only the version by
 * which a delivery was authenticated is current: nothing is accepted after a disable, a rotation or a delete, even if no notice of
 * it arrived. The partial unique index guards that one of several deliveries with one identity is accepted.
 */
export async function takeDeliveries(tx: Queryable, deliveries: readonly Delivery[]): Promise<Taken[]> {
  const uids = [...new Set(deliveries.map(({ webhook }) => webhook.uid))];
  const [rows, found] = await Promise.all([
    tx.query(lockWebhooks, [uids]),
    tx.query(findAccepted, [
      deliveries.map(({ webhook }) => webhook.uid),
      bytesArray(deliveries.map(({ identity }) => identity.hash)),
    ]),
  ]);
  const locked = new Map(rows.map((row) => [row.uid, { ...row, room: maxWebhookDeliveriesPerMinute - row.used }]));
  const known = new Set(found.map(({ n }) => n - 1));
  const seen = new Set<string>();
  return deliveries.map(({ webhook, identity }, index): Taken => {
    const row = locked.get(webhook.uid);
    if (!row?.enabled || row.version !== webhook.version) return 'changed';
    row.room -= 1;
    if (row.room < 0) return 'full';
    const key = `${webhook.uid} ${identity.hash.toString('hex')}`;
    const isKnown = known.has(index) || seen.has(key);
    seen.add(key);
    return isKnown ? 'DUPLICATE' : 'ACCEPTED';
  });
}
