import type { SealedRows } from '../../../platform/secrets/seal-again.ts';
import { bytes, defineStatement, integer, nullable, text } from '../../../platform/store/database/statement.ts';
import { sealPurpose } from './secret.ts';

/** The secrets of webhooks: the current one, and the one before where it is still accepted. */
export const sealedWebhooks: SealedRows = {
  read: defineStatement({
    name: 'read_webhooks_to_seal_again',
    text: `
      SELECT uid AS id, sealed_secret AS sealed,
        CASE WHEN previous_secret_until > clock_timestamp() THEN previous_sealed_secret END AS earlier
      FROM webhooks
      WHERE sealed_secret IS NOT NULL AND vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: { id: text(), sealed: bytes, earlier: nullable(bytes) },
  }),
  // The new version makes all processes drop the secrets that they decrypted with the old key.
  write: defineStatement({
    name: 'seal_webhook_again',
    text: `
      UPDATE webhooks SET vault_key_id = $3, sealed_secret = $4, previous_sealed_secret = $5, version = version + 1
      WHERE uid = $1 AND sealed_secret = $2`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_webhooks_of_other_keys',
    text: 'SELECT count(*) AS count FROM webhooks WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: sealPurpose,
};
