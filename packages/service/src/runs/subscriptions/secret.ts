import { randomBytes } from 'node:crypto';

/** Makes a signing secret in the form of Standard Webhooks. */
export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

/** Returns the purpose of a sealed secret. A sealed secret that is copied to another subscription cannot be opened there. */
export const sealPurpose = (subscriptionId: string): string => `event subscription ${subscriptionId}`;
