/** Writes deliveries to the log. One statement checks the webhook, takes from its budget and writes. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { WebhookDeliveryLabel } from '@runyard/contract/webhooks';
import type { Database, Queryable, Statement } from '../../store/database/database.ts';
import { boolean, defineStatement, float, nullable, text, uuid } from '../../store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import type { Identity } from './identity.ts';
import type { AcceptedDelivery, StartAutomations } from './start-automations.ts';

const perMinute = maxWebhookDeliveriesPerMinute;

/** SQL: whether fewer than the allowed number of times of the last minute are in the column. */
const hasRoom = (column: string): string =>
  `(cardinality(${column}) < ${perMinute} OR ${column}[cardinality(${column}) - ${perMinute - 1}] <= clock_timestamp() - interval '1 minute')`;

/** SQL: the column with the present time, without those that do not count any more. */
const withNow = (column: string): string =>
  `(${column} || clock_timestamp())[greatest(1, cardinality(${column}) - ${perMinute - 2}):]`;

/** SQL: milliseconds until there is room; zero or less: there is. */
const waitMs = (column: string): string =>
  `CASE WHEN cardinality(${column}) < ${perMinute} THEN 0
    ELSE extract(epoch FROM ${column}[cardinality(${column}) - ${perMinute - 1}] + interval '1 minute' - clock_timestamp())::float8 * 1000 END`;

/**
 * The row of the webhook is the lock of its budget. $2: the version by which the delivery was authenticated, so that nothing is
 * accepted after a disable, a rotation or a delete, even if no notice of it arrived. The partial unique index decides which of
 * several deliveries with one identity is accepted.
 */
const insertDelivery = defineStatement({
  name: 'insert_webhook_delivery',
  text: `
    WITH taken AS (
      UPDATE webhooks SET recent = ${withNow('recent')}, payload_bytes = payload_bytes + $4
      WHERE uid = $1 AND enabled AND version = $2 AND ${hasRoom('recent')} RETURNING uid
    ), accepted AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, label, size_bytes, identity, identity_hash, replay_of, payload, provider_event)
      SELECT $3::uuid, uid, 'ACCEPTED', $4, $5, $6, $8::uuid, $7, $9 FROM taken
      ON CONFLICT (webhook_uid, identity_hash) WHERE label = 'ACCEPTED' DO NOTHING RETURNING label
    ), duplicate AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, label, size_bytes, identity, identity_hash, replay_of)
      SELECT $3::uuid, uid, 'DUPLICATE', $4, $5, $6, $8::uuid FROM taken WHERE NOT EXISTS (SELECT FROM accepted) RETURNING label
    )
    SELECT label FROM accepted UNION ALL SELECT label FROM duplicate`,
  row: { label: text<'ACCEPTED' | 'DUPLICATE'>() },
});

const insertInvalid = defineStatement({
  name: 'insert_invalid_webhook_delivery',
  text: `
    WITH taken AS (
      UPDATE webhooks SET recent = ${withNow('recent')}
      WHERE uid = $1 AND enabled AND version = $2 AND ${hasRoom('recent')} RETURNING uid
    )
    INSERT INTO webhook_deliveries (id, webhook_uid, label, size_bytes)
    SELECT $3::uuid, uid, 'REJECTED_INVALID_JSON', $4 FROM taken RETURNING id`,
  row: { id: uuid },
});

/** Of a sender that has not proved itself: it takes from another budget than deliveries, but is told when theirs is used up. */
const insertRejected = defineStatement({
  name: 'insert_rejected_webhook_delivery',
  text: `
    WITH taken AS (
      UPDATE webhooks SET recent_rejected = ${withNow('recent_rejected')}
      WHERE uid = $1 AND enabled AND version = $2 AND ${hasRoom('recent')} AND ${hasRoom('recent_rejected')} RETURNING uid
    )
    INSERT INTO webhook_deliveries (id, webhook_uid, label, size_bytes)
    SELECT $3::uuid, uid, $5, $4 FROM taken RETURNING id`,
  row: { id: uuid },
});

const readRefusal = defineStatement({
  name: 'read_why_webhook_delivery_was_not_written',
  text: `
    SELECT enabled AND version = $2 AS is_current, ${waitMs('recent')} AS deliveries_ms, ${waitMs('recent_rejected')} AS rejections_ms
    FROM webhooks WHERE uid = $1`,
  row: { is_current: boolean, deliveries_ms: nullable(float), rejections_ms: nullable(float) },
});

const noteStarted: Statement = {
  name: 'note_runs_of_webhook_delivery',
  text: 'UPDATE webhook_deliveries SET runs = $2, outcomes = $3 WHERE id = $1',
};

/** `changed`: the webhook has another version by now. `full`: its budget is used up; `waitMs` until there is room again. */
export type NotWritten = { readonly kind: 'changed' } | { readonly kind: 'full'; readonly waitMs: number };

/** A delivery to be written. */
export interface NewDelivery {
  readonly id: string;
  readonly sizeBytes: number;
}

type Checked = Pick<KnownWebhook, 'uid' | 'version' | 'fullUntil'>;

/** Finds out why nothing was written, and notes until when the process can answer without the database. */
async function explain(db: Queryable, webhook: Checked, of: 'delivery' | 'rejection'): Promise<NotWritten> {
  const [row] = await db.query(readRefusal, [webhook.uid, webhook.version]);
  if (!row?.is_current) return { kind: 'changed' };
  const deliveries = row.deliveries_ms ?? 0;
  const rejections = row.rejections_ms ?? 0;
  const nowMs = Date.now();
  if (deliveries > 0) webhook.fullUntil.deliveries = nowMs + deliveries;
  if (rejections > 0) webhook.fullUntil.rejections = nowMs + rejections;
  return { kind: 'full', waitMs: Math.max(deliveries, of === 'rejection' ? rejections : 0, 1) };
}

/** Writes a delivery that was refused; null: it is written. */
export async function writeRejection(
  db: Queryable,
  webhook: Checked,
  { id, sizeBytes }: NewDelivery,
  label: Exclude<WebhookDeliveryLabel, 'ACCEPTED' | 'DUPLICATE'>,
): Promise<NotWritten | null> {
  const rows =
    label === 'REJECTED_INVALID_JSON'
      ? await db.query(insertInvalid, [webhook.uid, webhook.version, id, sizeBytes])
      : await db.query(insertRejected, [webhook.uid, webhook.version, id, sizeBytes, label]);
  return rows.length > 0
    ? null
    : await explain(db, webhook, label === 'REJECTED_INVALID_JSON' ? 'delivery' : 'rejection');
}

/** A delivery that passed all checks but that of its identity. */
export interface CheckedDelivery {
  readonly webhook: KnownWebhook;
  readonly id: string;
  readonly body: Buffer;
  readonly payload: unknown;
  readonly identity: Identity;
  /** The provider's name of the event; null: it has none. */
  readonly event: string | null;
  readonly replayOf?: string;
  /** True: the provider only checks the URL. */
  readonly startsNothing?: true;
}

export type Written = { readonly kind: 'accepted' | 'duplicate' };

/** Writes a delivery and starts the runs of the automations that it matches, in one transaction. */
export async function writeDelivery(
  db: Database,
  startAutomations: StartAutomations | undefined,
  delivery: CheckedDelivery,
): Promise<Written | NotWritten> {
  // One statement is a transaction of its own.
  if (startAutomations === undefined || delivery.startsNothing) return await writeWithin(db, undefined, delivery);
  return await db.transaction((tx) => writeWithin(tx, startAutomations, delivery));
}

/** Does the same in the transaction of the caller. */
export async function writeWithin(
  tx: Queryable,
  startAutomations: StartAutomations | undefined,
  delivery: CheckedDelivery,
): Promise<Written | NotWritten> {
  const label = await insertInto(tx, delivery);
  if (label === undefined) return await explain(tx, delivery.webhook, 'delivery');
  if (label === 'ACCEPTED' && startAutomations) await start(tx, startAutomations, delivery);
  return { kind: label === 'ACCEPTED' ? 'accepted' : 'duplicate' };
}

async function insertInto(db: Queryable, delivery: CheckedDelivery): Promise<'ACCEPTED' | 'DUPLICATE' | undefined> {
  const { webhook, id, body, identity, replayOf = null } = delivery;
  const [row] = await db.query(insertDelivery, [
    webhook.uid,
    webhook.version,
    id,
    body.length,
    identity.text,
    identity.hash,
    body,
    replayOf,
    delivery.event,
  ]);
  return row?.label;
}

async function start(tx: Queryable, startAutomations: StartAutomations, delivery: CheckedDelivery): Promise<void> {
  const { webhook, id, body, payload } = delivery;
  const accepted: AcceptedDelivery = {
    deliveryId: id,
    webhookUid: webhook.uid,
    webhookName: webhook.name,
    factoryUid: webhook.factoryUid,
    teamId: webhook.teamId,
    scheme: webhook.scheme,
    event: delivery.event,
    body,
    payload,
  };
  const { runs, outcomes } = await startAutomations(tx, accepted);
  if (runs.length + outcomes.length > 0) await tx.query(noteStarted, [id, runs, JSON.stringify(outcomes)]);
}
