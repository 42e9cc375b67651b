/** Decides which deliveries a transaction accepts, and writes them. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { AutomationOutcome, SignatureSchemeName } from '@runyard/contract/webhooks/webhooks';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import type { EventHeaders, Identity } from './read-request.ts';
import type { EventSender } from './sender.ts';
import { tellFollowers } from './tell-followers.ts';
import { explainRefusal, type NotWritten } from './write-rejection.ts';

/** The hash of a delivery's signed bytes. Another delivery with the same hash within `windowSeconds` seconds is a duplicate. */
interface SignedBytes {
  /** SHA-256 */
  readonly hash: Buffer;
  readonly windowSeconds: number;
}

/** A delivery that has passed all checks, except the checks of the budget and for duplicates. */
export interface CheckedDelivery {
  readonly webhook: KnownWebhook;
  readonly id: string;
  /** The bytes of the JSON as they were received. The run gets them unchanged, as a file. */
  readonly body: Buffer;
  /** The parsed body. Numbers that are too large for a double are infinite. Names of members may be any text, even `__proto__`. */
  readonly payload: unknown;
  readonly identity: Identity;
  /** The name of the event, from the header that the webhook or its scheme names; null: there is no name. */
  readonly event: string | null;
  /** The headers that are stored with the payload. */
  readonly headers: EventHeaders;
  readonly replayOf?: string;
  /** Set if another delivery with the same signed bytes is a duplicate for some time. Absent: only the identity shows duplicates. */
  readonly sameBytes?: SignedBytes;
  /** True: the request is a check of the URL by the provider, so it starts no run. */
  readonly startsNothing?: true;
  /** Advice to a person, which the log shows. */
  readonly reason?: string;
  /** Absent: the delivery does not come from a GitHub App. */
  readonly sender?: EventSender | undefined;
}

/** A delivery in the form in which automations read it. */
export interface AcceptedDelivery extends Pick<CheckedDelivery, 'body' | 'payload' | 'event' | 'sender'> {
  readonly deliveryId: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly factoryUid: string;
  readonly teamId: string;
  readonly scheme: SignatureSchemeName | null;
}

export const toAccepted = ({ webhook, id, body, payload, event, sender }: CheckedDelivery): AcceptedDelivery => ({
  deliveryId: id,
  webhookUid: webhook.uid,
  webhookName: webhook.name,
  factoryUid: webhook.factoryUid,
  teamId: webhook.teamId,
  scheme: webhook.scheme,
  event,
  body,
  payload,
  ...(sender ? { sender } : {}),
});

/**
 * Locks the rows of the webhooks, in the order of their UIDs to prevent deadlocks. No other transaction can use the budgets of these
 * webhooks meanwhile.
 */
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
 * Finds out which deliveries are duplicates. This is a separate statement after the locks, so that it sees rows that other
 * transactions wrote while this transaction waited for the locks. `same_bytes`: the last accepted delivery within the window that had
 * the same signed bytes; NULL: the earlier delivery has the same identity.
 */
const findAccepted = defineStatement({
  name: 'find_accepted_webhook_deliveries',
  text: `
    SELECT n, same_bytes FROM (
      SELECT i.n,
        (SELECT d.id FROM webhook_deliveries d WHERE d.webhook_uid = i.webhook_uid AND d.signed_hash = i.signed_hash
          AND d.label = 'ACCEPTED' AND d.received_at > clock_timestamp() - make_interval(secs => i.window_seconds)
          ORDER BY d.id DESC LIMIT 1) AS same_bytes,
        (SELECT true FROM webhook_deliveries d WHERE d.webhook_uid = i.webhook_uid AND d.identity_hash = i.identity_hash
          AND d.label = 'ACCEPTED' LIMIT 1) IS TRUE AS is_known
      FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::integer[]) WITH ORDINALITY
        AS i (webhook_uid, identity_hash, signed_hash, window_seconds, n)) found
    WHERE is_known OR same_bytes IS NOT NULL`,
  row: { n: integer, same_bytes: nullable(uuid) },
});

/**
 * The decision about a delivery. `changed`: the webhook now has another version than when the delivery was authenticated. `full`: the
 * budget of the webhook is used up. Otherwise the transaction must write the delivery, with this label and this reason in the log.
 */
type Taken = 'changed' | 'full' | { readonly label: 'ACCEPTED' | 'DUPLICATE'; readonly reason: string | null };

/**
 * Locks the webhooks of the deliveries until the transaction ends, and decides about the deliveries in their order. A delivery is
 * accepted only if its webhook still has the version with which the delivery was authenticated. So no delivery is accepted with an old
 * secret or for a disabled or deleted webhook, even if this process missed the notice of the change. A partial unique index ensures
 * that only one of several deliveries with the same identity is accepted.
 */
export async function takeDeliveries(tx: Queryable, deliveries: readonly CheckedDelivery[]): Promise<Taken[]> {
  const uids = [...new Set(deliveries.map(({ webhook }) => webhook.uid))];
  const [rows, acceptedEarlier] = await Promise.all([
    tx.query(lockWebhooks, [uids]),
    tx.query(findAccepted, [
      deliveries.map(({ webhook }) => webhook.uid),
      bytesArray(deliveries.map(({ identity }) => identity.hash)),
      bytesArray(deliveries.map(({ sameBytes }) => sameBytes?.hash ?? null)),
      deliveries.map(({ sameBytes }) => sameBytes?.windowSeconds ?? 0),
    ]),
  ]);
  const locked = new Map(rows.map((row) => [row.uid, { ...row, room: maxWebhookDeliveriesPerMinute - row.used }]));
  const known = new Map(acceptedEarlier.map(({ n, same_bytes: id }) => [n - 1, id]));
  const seen = new Set<string>();
  const accepted = new Map<string, string>();
  return deliveries.map(({ webhook, id, identity, sameBytes, reason = null }, index): Taken => {
    const row = locked.get(webhook.uid);
    if (!row?.enabled || row.version !== webhook.version) return 'changed';
    row.room -= 1;
    if (row.room < 0) return 'full';
    const key = `${webhook.uid} ${identity.hash.toString('hex')}`;
    const ofBytes = sameBytes && `${webhook.uid} ${sameBytes.hash.toString('hex')}`;
    const same = known.get(index) ?? (ofBytes ? accepted.get(ofBytes) : undefined);
    const isKnown = known.has(index) || seen.has(key) || same !== undefined;
    seen.add(key);
    if (isKnown) return { label: 'DUPLICATE', reason: same && sameBytes ? sameBytesReason(same, sameBytes) : null };
    if (ofBytes) accepted.set(ofBytes, id);
    return { label: 'ACCEPTED', reason };
  });
}

const sameBytesReason = (earlierId: string, { windowSeconds }: SignedBytes): string =>
  `the delivery ${earlierId} had the same signed bytes. The signature does not cover the id, so equal bytes count once in ${windowSeconds} s (duplicate_window_seconds)`;

/**
 * Returns the SQL of two common table expressions: the first writes deliveries, the second counts them in the budgets of their
 * webhooks. The transaction has locked these webhooks. The arguments name the SQL parameters with the values of `deliveryParameters`.
 */
export const insertDeliveryRows = (rows: string, payloads: string, budgets: string): string => `
    webhook_delivery AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, identity, identity_hash, replay_of, runs, outcomes,
        payload, provider_event, headers, signed_hash, reason, sender)
      SELECT i.id, i.webhook_uid, i.team_id, i.label, i.size_bytes, i.identity, decode(i.identity_hash, 'hex'), i.replay_of, i.runs,
        i.outcomes, p.payload, i.provider_event, i.headers, decode(i.signed_hash, 'hex'), i.reason, i.sender
      FROM jsonb_to_recordset(${rows}::jsonb) AS i(n bigint, id uuid, webhook_uid text, team_id uuid, label text, size_bytes bigint,
          identity text, identity_hash text, replay_of uuid, runs text[], outcomes jsonb, provider_event text, headers jsonb, signed_hash text,
          reason text, sender jsonb)
        JOIN unnest(${payloads}::bytea[]) WITH ORDINALITY AS p(payload, n) ON p.n = i.n
    ), webhook_budget AS (
      UPDATE webhooks w SET payload_bytes = w.payload_bytes + b.bytes,
        recent = (w.recent || array_fill(clock_timestamp(), ARRAY[b.count]))[greatest(1, cardinality(w.recent) + b.count - ${maxWebhookDeliveriesPerMinute - 1}):]
      FROM jsonb_to_recordset(${budgets}::jsonb) AS b(uid text, count integer, bytes bigint) WHERE w.uid = b.uid
    )`;

/** Writes deliveries that start nothing. The parameters are the values of `deliveryParameters`. */
export const insertDeliveries = defineStatement({
  name: 'insert_webhook_deliveries',
  text: `WITH ${insertDeliveryRows('$1', '$2', '$3')} SELECT ${tellFollowers}`,
  row: {},
});

/** A delivery that the transaction writes. */
export interface TakenDelivery extends Exclude<Taken, string> {
  readonly delivery: CheckedDelivery;
  /** The outcome for each automation that selects the webhook. */
  readonly outcomes: readonly AutomationOutcome[];
}

function toRow({ delivery, label, reason, outcomes }: TakenDelivery, index: number) {
  const { id, webhook, body, identity, replayOf, event, headers, sameBytes, sender } = delivery;
  return {
    n: index + 1,
    id,
    webhook_uid: webhook.uid,
    team_id: webhook.teamId,
    label,
    size_bytes: body.length,
    identity: identity.text,
    identity_hash: identity.hash.toString('hex'),
    replay_of: replayOf,
    runs: outcomes.flatMap(({ run_id: runId }) => runId ?? []),
    outcomes,
    reason,
    provider_event: event,
    sender,
    ...(label === 'ACCEPTED' ? { headers, signed_hash: sameBytes?.hash.toString('hex') } : {}),
  };
}

/** Returns the values of the SQL parameters of `insertDeliveryRows`. */
export function deliveryParameters(taken: readonly TakenDelivery[]): unknown[] {
  const ofWebhook = Map.groupBy(taken, ({ delivery }) => delivery.webhook.uid);
  const budgets = [...ofWebhook].map(([uid, own]) => ({
    uid,
    count: own.length,
    bytes: own.reduce((sum, { delivery }) => sum + delivery.body.length, 0),
  }));
  return [
    JSON.stringify(taken.map(toRow)),
    bytesArray(taken.map(({ delivery, label }) => (label === 'ACCEPTED' ? delivery.body : null))),
    JSON.stringify(budgets),
  ];
}

/** The answer to a delivery. */
export type Written = { readonly kind: 'accepted' | 'duplicate' } | NotWritten;

/** Returns the answers to deliveries after their rows were written. */
export async function toWritten(
  db: Queryable,
  deliveries: readonly CheckedDelivery[],
  taken: readonly Taken[],
): Promise<Written[]> {
  const full = new Map<KnownWebhook, NotWritten>();
  for (const [index, { webhook }] of deliveries.entries())
    if (taken[index] === 'full' && !full.has(webhook)) full.set(webhook, await explainRefusal(db, webhook, 'delivery'));
  return deliveries.map(({ webhook }, index): Written => {
    const one = taken[index];
    if (typeof one === 'object') return { kind: one.label === 'ACCEPTED' ? 'accepted' : 'duplicate' };
    return (one === 'full' ? full.get(webhook) : undefined) ?? { kind: 'changed' };
  });
}
