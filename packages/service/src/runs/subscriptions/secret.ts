import { randomBytes } from 'node:crypto';
import { defineSealedRows } from '../../platform/secrets/seal-again.ts';

/** Makes a signing secret in the format of Standard Webhooks. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/**
 * Returns the purpose with which the secret of a subscription is encrypted. Because of it, an encrypted secret that is copied to another
 * subscription cannot be decrypted there.
 */
export const sealPurpose = (subscriptionId: string): string => `event subscription ${subscriptionId}`;

/** Columns with the encrypted signing secrets of subscriptions: the current secret, and the previous one while it is still used. */
export const sealedSubscriptions = defineSealedRows({
  table: 'event_subscriptions',
  id: 'id',
  sealed: 'sealed_secret',
  earlier: { sealed: 'previous_sealed_secret', until: 'previous_secret_until' },
  purpose: sealPurpose,
});
