import type { RowRule } from '../../../platform/domain.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../../platform/store/database/statement.ts';
import { idAt } from '../../../platform/store/database/uuid.ts';

/** interface.md, "Limits": at least 50 deliveries. */
const keptDeliveries = 50;

/**
 * Deletes rejected deliveries after 7 days. Deletes accepted deliveries and duplicates, which keep their identities reserved, after 30
 * days. Never deletes the latest 50.
 */
export const oldDeliveries: RowRule = {
  table: 'webhook_deliveries',
  isOver: `id < ${idAt('7 days')} AND (label LIKE 'REJECTED%' OR id < ${idAt('30 days')}) AND id < (
    SELECT newer.id FROM webhook_deliveries newer WHERE newer.webhook_uid = webhook_deliveries.webhook_uid
    ORDER BY newer.id DESC OFFSET ${keptDeliveries - 1} LIMIT 1)`,
};

/** Deliveries of webhooks that were deleted. */
export const deliveriesOfNoWebhook: RowRule = {
  table: 'webhook_deliveries',
  isOver: `id < ${idAt('1 minute')} AND NOT EXISTS (SELECT FROM webhooks WHERE uid = webhook_deliveries.webhook_uid)`,
};

/** Webhooks whose counted bytes are above the limit. */
const readLarge = defineStatement({
  name: 'read_webhooks_with_large_logs',
  text: 'SELECT uid FROM webhooks WHERE payload_bytes > $1',
  row: { uid: text() },
});

/** Deletes the oldest payloads beyond the limit, with their headers, but keeps the latest 50, and counts the remaining bytes. */
const trim = defineStatement({
  name: 'trim_payloads_of_webhook',
  text: `
    WITH stored AS (
      SELECT id, size_bytes, row_number() OVER newest AS number, sum(size_bytes) OVER newest AS up_to_here
      FROM webhook_deliveries WHERE webhook_uid = $1 AND label = 'ACCEPTED' AND payload IS NOT NULL
      WINDOW newest AS (ORDER BY id DESC)
    ), trimmed AS (
      UPDATE webhook_deliveries d SET payload = NULL, headers = NULL FROM stored
      WHERE d.id = stored.id AND stored.number > ${keptDeliveries} AND stored.up_to_here > $2 RETURNING d.size_bytes
    ), counted AS (
      UPDATE webhooks SET payload_bytes =
        (SELECT coalesce(sum(size_bytes), 0) FROM stored) - (SELECT coalesce(sum(size_bytes), 0) FROM trimmed)
      WHERE uid = $1
    )
    SELECT count(*) AS count FROM trimmed`,
  row: { count: integer },
});

/** Deletes payloads of logs that exceed `maxBytes`, until nine tenths of `maxBytes` are left. Returns the number of deleted payloads. */
export async function trimPayloads(db: Database, maxBytes: number): Promise<number> {
  let trimmed = 0;
  for (const { uid } of await db.query(readLarge, [maxBytes])) {
    const [row] = await db.query(trim, [uid, Math.floor(maxBytes * 0.9)]);
    trimmed += row?.count ?? 0;
  }
  return trimmed;
}
