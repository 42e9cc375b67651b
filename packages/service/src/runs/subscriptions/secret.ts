import { randomBytes } from 'node:crypto';
import { defineSealedRows } from '../../platform/secrets/seal-again.ts';

/** Makes a signing secret in the form of Standard Webhooks. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Returns the purpose of a sealed secret. A sealed secret that is copied to another subscription cannot be opened there. */
export const sealPurpose = (subscriptionId: string): string => `event subscription ${subscriptionId}`;

/** The signing secrets of subscriptions: the current secret, and the previous one while it still signs. */
export const sealedSubscriptions = defineSealedRows({
  table: 'event_subscriptions',
  id: 'id',
  sealed: 'sealed_secret',
  earlier: { sealed: 'previous_sealed_secret', until: 'previous_secret_until' },
  purpose: sealPurpose,
});
