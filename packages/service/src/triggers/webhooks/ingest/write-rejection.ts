/**
 * Writes refused deliveries to the log of their webhook. One statement checks the version of the webhook, checks and updates its
 * budget, and writes the delivery.
 */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { WebhookDeliveryLabel } from '@runyard/contract/webhooks/webhooks';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, float, nullable, uuid } from '../../../platform/store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import { tellFollowers } from './tell-followers.ts';

/**
 * Why nothing was written. `changed`: the webhook has another version now. `full`: the budget of the webhook is used up. `waitMs`: the
 * time until the budget allows a delivery again.
 */
export type NotWritten = { readonly kind: 'changed' } | { readonly kind: 'full'; readonly waitMs: number };

const perMinute = maxWebhookDeliveriesPerMinute;

/** Returns an SQL condition: the column, a list of times, has fewer than the allowed number of times in the last minute. */
const hasRoom = (column: string): string =>
  `(cardinality(${column}) < ${perMinute} OR ${column}[cardinality(${column}) - ${perMinute - 1}] <= clock_timestamp() - interval '1 minute')`;

/** Returns SQL for the column with the present time added and without the oldest times, which are not needed any more. */
const withNow = (column: string): string =>
  `(${column} || clock_timestamp())[greatest(1, cardinality(${column}) - ${perMinute - 2}):]`;

/** Returns SQL for the milliseconds until the budget allows a delivery. Zero or less: the budget allows one now. */
const waitMs = (column: string): string =>
  `CASE WHEN cardinality(${column}) < ${perMinute} THEN 0
    ELSE extract(epoch FROM ${column}[cardinality(${column}) - ${perMinute - 1}] + interval '1 minute' - clock_timestamp())::float8 * 1000 END`;

const insertInvalid = defineStatement({
  name: 'insert_invalid_webhook_delivery',
  text: `
    WITH taken AS (
      UPDATE webhooks SET recent = ${withNow('recent')}
      WHERE uid = $1 AND enabled AND version = $2 AND ${hasRoom('recent')} RETURNING uid, team_id
    )
    INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, reason)
    SELECT $3::uuid, uid, team_id, 'REJECTED_INVALID_JSON', $4, $5 FROM taken RETURNING id, ${tellFollowers}`,
  row: { id: uuid },
});

/**
 * Writes a refused delivery whose sender was not verified. Such deliveries have their own budget, `recent_rejected`. They are also not
 * written if the budget of accepted deliveries, `recent`, is used up.
 */
const insertRejected = defineStatement({
  name: 'insert_rejected_webhook_delivery',
  text: `
    WITH taken AS (
      UPDATE webhooks SET recent_rejected = ${withNow('recent_rejected')}
      WHERE uid = $1 AND enabled AND version = $2 AND ${hasRoom('recent')} AND ${hasRoom('recent_rejected')} RETURNING uid, team_id
    )
    INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, reason)
    SELECT $3::uuid, uid, team_id, $5, $4, $6 FROM taken RETURNING id, ${tellFollowers}`,
  row: { id: uuid },
});

const readRefusal = defineStatement({
  name: 'read_why_webhook_delivery_was_not_written',
  text: `
    SELECT enabled AND version = $2 AS is_current, ${waitMs('recent')} AS deliveries_ms, ${waitMs('recent_rejected')} AS rejections_ms
    FROM webhooks WHERE uid = $1`,
  row: { is_current: boolean, deliveries_ms: nullable(float), rejections_ms: nullable(float) },
});

export interface RefusedDelivery {
  readonly id: string;
  readonly sizeBytes: number;
  /** The reason that the log shows; null: the label alone shows the reason. */
  readonly reason: string | null;
}

type Checked = Pick<KnownWebhook, 'uid' | 'version' | 'fullUntil'>;

/**
 * Returns why a delivery was not written. If a budget is used up, writes the time at which the budget has room again into
 * `webhook.fullUntil`. Until that time, the process refuses deliveries without a query.
 */
export async function explainRefusal(
  db: Queryable,
  webhook: Checked,
  of: 'delivery' | 'rejection',
): Promise<NotWritten> {
  const [row] = await db.query(readRefusal, [webhook.uid, webhook.version]);
  if (!row?.is_current) return { kind: 'changed' };
  const deliveries = row.deliveries_ms ?? 0;
  const rejections = row.rejections_ms ?? 0;
  const nowMs = performance.now();
  if (deliveries > 0) webhook.fullUntil.deliveries = nowMs + deliveries;
  if (rejections > 0) webhook.fullUntil.rejections = nowMs + rejections;
  return { kind: 'full', waitMs: Math.max(deliveries, of === 'rejection' ? rejections : 0, 1) };
}

/** Writes a refused delivery. Returns null, or the reason why it was not written. */
export async function writeRejection(
  db: Queryable,
  webhook: Checked,
  { id, sizeBytes, reason }: RefusedDelivery,
  label: Exclude<WebhookDeliveryLabel, 'ACCEPTED' | 'DUPLICATE'>,
): Promise<NotWritten | null> {
  const rows =
    label === 'REJECTED_INVALID_JSON'
      ? await db.query(insertInvalid, [webhook.uid, webhook.version, id, sizeBytes, reason])
      : await db.query(insertRejected, [webhook.uid, webhook.version, id, sizeBytes, label, reason]);
  return rows.length > 0
    ? null
    : await explainRefusal(db, webhook, label === 'REJECTED_INVALID_JSON' ? 'delivery' : 'rejection');
}
