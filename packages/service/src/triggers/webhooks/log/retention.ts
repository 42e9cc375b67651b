import type { RowRule } from '../../../platform/domain.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../../platform/store/database/statement.ts';
import { idAt } from '../../../platform/store/database/uuid.ts';

/** Number of newest deliveries of each webhook that are never deleted (contract, "Limits": at least 50). */
const keptDeliveries = 50;

/**
 * Deletes rejected deliveries after 7 days, and accepted deliveries and duplicates after 30 days. While an accepted delivery is
 * stored, another delivery with the same identity is a duplicate. Never deletes the newest 50 deliveries of a webhook.
 */
export const oldDeliveries: RowRule = {
  table: 'webhook_deliveries',
  isOver: `id < ${idAt('7 days')} AND (label LIKE 'REJECTED%' OR id < ${idAt('30 days')}) AND id < (
    SELECT newer.id FROM webhook_deliveries newer WHERE newer.webhook_uid = webhook_deliveries.webhook_uid
    ORDER BY newer.id DESC OFFSET ${keptDeliveries - 1} LIMIT 1)`,
};

/** Deletes the deliveries of webhooks that were deleted. */
export const deliveriesOfNoWebhook: RowRule = {
  table: 'webhook_deliveries',
  isOver: `id < ${idAt('1 minute')} AND NOT EXISTS (SELECT FROM webhooks WHERE uid = webhook_deliveries.webhook_uid)`,
};

/** Finds webhooks whose stored payloads have more than $1 bytes. */
const readLarge = defineStatement({
  name: 'read_webhooks_with_large_logs',
  text: 'SELECT uid FROM webhooks WHERE payload_bytes > $1',
  row: { uid: text() },
});

/**
 * Deletes the oldest payloads of a webhook, with their headers, until at most $2 bytes are left. Keeps the newest 50, and those of
 * deliveries whose starts still wait. Stores the number of bytes that are left.
 */
const trim = defineStatement({
  name: 'trim_payloads_of_webhook',
  text: `
    WITH stored AS (
      SELECT id, size_bytes, row_number() OVER newest AS number, sum(size_bytes) OVER newest AS up_to_here
      FROM webhook_deliveries WHERE webhook_uid = $1 AND label = 'ACCEPTED' AND payload IS NOT NULL
      WINDOW newest AS (ORDER BY id DESC)
    ), trimmed AS (
      UPDATE webhook_deliveries d SET payload = NULL, headers = NULL FROM stored
      WHERE d.id = stored.id AND stored.number > ${keptDeliveries} AND stored.up_to_here > $2
        AND NOT EXISTS (SELECT FROM starts s WHERE s.outcome = 'waiting' AND s.delivery_id = d.id)
      RETURNING d.size_bytes
    ), counted AS (
      UPDATE webhooks SET payload_bytes =
        (SELECT coalesce(sum(size_bytes), 0) FROM stored) - (SELECT coalesce(sum(size_bytes), 0) FROM trimmed)
      WHERE uid = $1
    )
    SELECT count(*) AS count FROM trimmed`,
  row: { count: integer },
});

/**
 * If the payloads of a webhook have more than `maxBytes` bytes, deletes the oldest ones until nine tenths of `maxBytes` are left.
 * Returns the number of deleted payloads of all webhooks.
 */
export async function trimPayloads(db: Database, maxBytes: number): Promise<number> {
  let trimmed = 0;
  for (const { uid } of await db.query(readLarge, [maxBytes])) {
    const [row] = await db.query(trim, [uid, Math.floor(maxBytes * 0.9)]);
    trimmed += row?.count ?? 0;
  }
  return trimmed;
}
