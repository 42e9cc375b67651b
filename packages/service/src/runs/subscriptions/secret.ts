import { randomBytes } from 'node:crypto';
import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import { bytes, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';

/** Makes a signing secret in the form of Standard Webhooks. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Returns the purpose of a sealed secret. A sealed secret that is copied to another subscription cannot be opened there. */
export const sealPurpose = (subscriptionId: string): string => `event subscription ${subscriptionId}`;

/** The signing secrets of subscriptions: the current one, and the one before where it still signs. */
export const sealedSubscriptions: SealedRows = {
  read: defineStatement({
    name: 'read_event_subscriptions_to_seal_again',
    text: `
      SELECT id, sealed_secret AS sealed, CASE WHEN previous_secret_until > now() THEN previous_sealed_secret END AS earlier
      FROM event_subscriptions WHERE vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: { id: uuid, sealed: bytes, earlier: nullable(bytes) },
  }),
  write: defineStatement({
    name: 'seal_event_subscription_again',
    text: `
      UPDATE event_subscriptions SET vault_key_id = $3, sealed_secret = $4, previous_sealed_secret = $5
      WHERE id = $1 AND sealed_secret = $2`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_event_subscriptions_of_other_keys',
    text: 'SELECT count(*) AS count FROM event_subscriptions WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: sealPurpose,
};
