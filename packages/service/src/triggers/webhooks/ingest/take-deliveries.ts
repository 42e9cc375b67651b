/** Decides which deliveries a transaction accepts, and prepares their rows, which another statement may write. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { AutomationOutcome, SignatureSchemeName } from '@runyard/contract/webhooks/webhooks';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import type { KnownWebhook } from './directory.ts';
import type { Identity } from './read-request.ts';
import { tellFollowers } from './tell-followers.ts';
import { type CheckedDelivery, explainSameBytes, findSameBytes, type SignedBytes } from './write-deliveries.ts';

/** A delivery that the transaction accepts. */
export interface AcceptedDelivery {
  readonly deliveryId: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly factoryUid: string;
  readonly teamId: string;
  readonly scheme: SignatureSchemeName | null;
  /** The name of the event, from the header that the webhook or its scheme names; null: there is no name. */
  readonly event: string | null;
  /** The bytes of the JSON as they were received. The run gets them unchanged, as a file. */
  readonly body: Buffer;
  /** The parsed body. Numbers that are too large for a double are infinite. Names of members may be any text, even `__proto__`. */
  readonly payload: unknown;
}

/** The members of a delivery that decide which automations may read it. */
export type FeedingDelivery = Pick<AcceptedDelivery, 'webhookUid' | 'factoryUid' | 'scheme'>;

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
 * transactions wrote while this transaction waited for the locks. `same_bytes`: the earlier accepted delivery with the same signed
 * bytes; NULL: the earlier delivery has the same identity.
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

/** A duplicate. `reason`: why it is a duplicate; null: a delivery with the same identity was accepted. */
interface Duplicate {
  readonly label: 'DUPLICATE';
  readonly reason: string | null;
}

/**
 * The decision about a delivery. `changed`: the webhook now has another version than when the delivery was authenticated. `full`: the
 * budget of the webhook is used up.
 */
type Taken = 'ACCEPTED' | Duplicate | 'changed' | 'full';

/**
 * Locks the webhooks of the deliveries until the transaction ends, and decides about the deliveries in their order. A delivery is
 * accepted only if its webhook still has the version with which the delivery was authenticated. So no delivery is accepted with an old
 * secret or for a disabled or deleted webhook, even if this process missed the notice of the change. A partial unique index ensures
 * that only one of several deliveries with the same identity is accepted.
 */
export async function takeDeliveries(tx: Queryable, deliveries: readonly Delivery[]): Promise<Taken[]> {
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

const perMinute = maxWebhookDeliveriesPerMinute;

/**
 * Returns the SQL of two common table expressions: the first writes deliveries, the second counts them in the budgets of their
 * webhooks. The transaction has locked these webhooks. The arguments name the SQL parameters with the values of `DeliveryRows.take`.
 */
export const insertDeliveryRows = (rows: string, payloads: string, budgets: string): string => `
    webhook_delivery AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, identity, identity_hash, replay_of, runs, outcomes,
        payload, provider_event, headers, signed_hash, reason)
      SELECT i.id, i.webhook_uid, i.team_id, i.label, i.size_bytes, i.identity, decode(i.identity_hash, 'hex'), i.replay_of, i.runs,
        i.outcomes, p.payload, i.provider_event, i.headers, decode(i.signed_hash, 'hex'), i.reason
      FROM jsonb_to_recordset(${rows}::jsonb) AS i(n bigint, id uuid, webhook_uid text, team_id uuid, label text, size_bytes bigint,
          identity text, identity_hash text, replay_of uuid, runs text[], outcomes jsonb, provider_event text, headers jsonb, signed_hash text,
          reason text)
        JOIN unnest(${payloads}::bytea[]) WITH ORDINALITY AS p(payload, n) ON p.n = i.n
    ), webhook_budget AS (
      UPDATE webhooks w SET payload_bytes = w.payload_bytes + b.bytes,
        recent = (w.recent || array_fill(clock_timestamp(), ARRAY[b.count]))[greatest(1, cardinality(w.recent) + b.count - ${perMinute - 1}):]
      FROM jsonb_to_recordset(${budgets}::jsonb) AS b(uid text, count integer, bytes bigint) WHERE w.uid = b.uid
    )`;

const insert = defineStatement({
  name: 'insert_webhook_deliveries',
  text: `WITH ${insertDeliveryRows('$1', '$2', '$3')} SELECT ${tellFollowers}`,
  row: {},
});

/** The ids of the runs that a delivery has started, and its outcome for each automation that selects its webhook. */
interface OutcomeOfDelivery {
  readonly id: string;
  readonly runs: readonly string[];
  readonly outcomes: readonly AutomationOutcome[];
}

/** A delivery that the transaction writes, as accepted or as a duplicate. */
export interface TakenDelivery {
  readonly delivery: CheckedDelivery;
  readonly label: 'ACCEPTED' | 'DUPLICATE';
  /** The reason that the log shows; null: the log shows no reason. */
  readonly reason: string | null;
}

/**
 * The rows of the deliveries to write. If a statement writes the runs of deliveries, it also writes these rows, with
 * `insertDeliveryRows`. So each row is written once, together with its outcomes.
 */
export interface DeliveryRows {
  /** Adds outcomes to rows that are not written yet. */
  note(outcomes: readonly OutcomeOfDelivery[]): void;
  /** Returns the values of the SQL parameters of `insertDeliveryRows`, for all rows that were not taken before. */
  take(): [rows: string, payloads: Buffer, budgets: string];
}

function toRow({ delivery, label, reason }: TakenDelivery, n: number, outcome: OutcomeOfDelivery | undefined) {
  const { id, webhook, body, identity, replayOf, event, headers, sameBytes } = delivery;
  return {
    n,
    id,
    webhook_uid: webhook.uid,
    team_id: webhook.teamId,
    label,
    size_bytes: body.length,
    identity: identity.text,
    identity_hash: identity.hash.toString('hex'),
    replay_of: replayOf,
    runs: outcome?.runs ?? [],
    outcomes: outcome?.outcomes ?? [],
    reason,
    provider_event: event,
    ...(label === 'ACCEPTED' ? { headers, signed_hash: sameBytes?.hash.toString('hex') } : {}),
  };
}

function budgetsOf(taken: readonly TakenDelivery[]) {
  const budgets = new Map<string, { uid: string; count: number; bytes: number }>();
  for (const { delivery } of taken) {
    const { uid } = delivery.webhook;
    const budget = budgets.get(uid) ?? { uid, count: 0, bytes: 0 };
    budget.count += 1;
    budget.bytes += delivery.body.length;
    budgets.set(uid, budget);
  }
  return [...budgets.values()];
}

/** Returns the rows of the deliveries, and a function that writes those which no other statement has taken. */
export function makeDeliveryRows(deliveries: readonly TakenDelivery[]): {
  readonly rows: DeliveryRows;
  writeRest(tx: Transaction): void;
} {
  let unwritten = deliveries;
  const noted = new Map<string, OutcomeOfDelivery>();
  const rows: DeliveryRows = {
    note: (outcomes) => {
      for (const outcome of outcomes) noted.set(outcome.id, outcome);
    },
    take: () => {
      const batch = unwritten;
      unwritten = [];
      return [
        JSON.stringify(batch.map((each, index) => toRow(each, index + 1, noted.get(each.delivery.id)))),
        bytesArray(batch.map(({ delivery, label }) => (label === 'ACCEPTED' ? delivery.body : null))),
        JSON.stringify(budgetsOf(batch)),
      ];
    },
  };
  const writeRest = (tx: Transaction) => {
    if (unwritten.length > 0) tx.atCommit(insert, rows.take());
  };
  return { rows, writeRest };
}
