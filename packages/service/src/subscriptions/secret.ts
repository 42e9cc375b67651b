import { randomBytes } from 'node:crypto';

/** A new signing secret in the form of Standard Webhooks. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** What the secret of a subscription is sealed for: a sealed secret that is copied to another one cannot be opened there. */
export const sealPurpose = (subscriptionId: string): string => `event subscription ${subscriptionId}`;
