/** Decides which deliveries a transaction takes. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import type { Identity } from './identity.ts';
import { explainSameBytes, findSameBytes, type SignedBytes } from './same-bytes.ts';

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

/**
 * A statement of its own after the locks: it sees what transactions wrote for which the locks waited. `same_bytes`: the delivery that was
 * accepted with the same signed bytes; NULL: the identity was accepted.
 */
const findAccepted = defineStatement({
  name: 'find_accepted_webhook_deliveries',
  text: `
    SELECT n, same_bytes FROM (
      SELECT i.n, ${findSameBytes('i')} AS same_bytes,
        (SELECT true FROM webhook_deliveries d WHERE d.webhook_uid = i.webhook_uid AND d.identity_hash = i.identity_hash
          AND d.label = 'ACCEPTED' LIMIT 1) IS TRUE AS is_known
      FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::integer[]) WITH ORDINALITY
        AS i (webhook_uid, identity_hash, signed_hash, window_seconds, n)) found
    WHERE is_known OR same_bytes IS NOT NULL`,
  row: { n: integer, same_bytes: nullable(uuid) },
});

interface Delivery {
  readonly webhook: Pick<KnownWebhook, 'uid' | 'version'>;
  readonly id: string;
  readonly identity: Identity;
  readonly sameBytes?: SignedBytes;
}

/** A duplicate, and why it is one; null: by its identity. */
interface Duplicate {
  readonly label: 'DUPLICATE';
  readonly reason: string | null;
}

/** `changed`: the webhook has another version by now. `full`: its budget is used up. */
type Taken = 'ACCEPTED' | Duplicate | 'changed' | 'full';

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
      bytesArray(deliveries.map(({ sameBytes }) => sameBytes?.hash ?? null)),
      deliveries.map(({ sameBytes }) => sameBytes?.windowSeconds ?? 0),
    ]),
  ]);
  const locked = new Map(rows.map((row) => [row.uid, { ...row, room: maxWebhookDeliveriesPerMinute - row.used }]));
  const known = new Map(found.map(({ n, same_bytes: id }) => [n - 1, id]));
  const seen = new Set<string>();
  const accepted = new Map<string, string>();
  return deliveries.map(({ webhook, id, identity, sameBytes }, index): Taken => {
    const row = locked.get(webhook.uid);
    if (!row?.enabled || row.version !== webhook.version) return 'changed';
    row.room -= 1;
    if (row.room < 0) return 'full';
    const key = `${webhook.uid} ${identity.hash.toString('hex')}`;
    const ofBytes = sameBytes && `${webhook.uid} ${sameBytes.hash.toString('hex')}`;
    const same = known.get(index) ?? (ofBytes ? accepted.get(ofBytes) : undefined);
    const isKnown = known.has(index) || seen.has(key) || same !== undefined;
    seen.add(key);
    if (isKnown)
      return { label: 'DUPLICATE', reason: same && sameBytes ? explainSameBytes(same, sameBytes.windowSeconds) : null };
    if (ofBytes) accepted.set(ofBytes, id);
    return 'ACCEPTED';
  });
}
