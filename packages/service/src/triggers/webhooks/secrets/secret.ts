/** Creates, checks and encrypts secrets of webhooks. Only this file knows where a webhook's secret is stored. */
import { randomBytes } from 'node:crypto';
import type { SignatureSchemeName, WebhookAuthMode } from '@runyard/contract/webhooks/webhooks';
import type { Vault } from '../../../platform/secrets/vault.ts';

/** The members of a webhook that define how its senders authenticate. */
export interface Authentication {
  readonly auth_mode: WebhookAuthMode;
  readonly signature_scheme?: SignatureSchemeName | undefined;
}

const minTokenLength = 16;
/** RFC 3986, 2.3: characters that a URL may contain without an escape. */
const urlSafe = /^[A-Za-z0-9._~-]+$/;
/** RFC 6750, 2.1 allows fewer; senders may use every character that a header can contain. */
const printable = /^[\x21-\x7e]+$/;

/** Returns whether the provider creates the secret, so that the request must contain it. */
export const isMadeByProvider = ({ auth_mode, signature_scheme }: Authentication): boolean =>
  auth_mode === 'signature' && signature_scheme !== 'standard_webhooks';

/** Creates a secret of 256 random bits in the form of the mode. */
export const newWebhookSecret = ({ auth_mode }: Authentication): string =>
  auth_mode === 'signature' ? `whsec_${randomBytes(32).toString('base64')}` : randomBytes(32).toString('base64url');

/** Returns why a secret does not fit the mode; null: it fits. */
export function secretFault({ auth_mode, signature_scheme }: Authentication, secret: string): string | null {
  if (auth_mode === 'signature') {
    if (signature_scheme === 'gitlab') return printable.test(secret) ? null : 'must be printable ASCII without spaces';
    if (signature_scheme !== 'standard_webhooks') return null;
    const text = secret.replace(/^whsec_/, '');
    const bytes = Buffer.from(text, 'base64');
    const isBase64 = bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    return isBase64 && bytes.length >= minTokenLength
      ? null
      : `must be at least ${minTokenLength} bytes in base64, after whsec_ or without it`;
  }
  if (secret.length < minTokenLength) return `must have at least ${minTokenLength} characters`;
  if (auth_mode === 'token') return printable.test(secret) ? null : 'must be printable ASCII without spaces';
  if (secret.length > 200) return 'must have at most 200 characters';
  return urlSafe.test(secret) ? null : 'must be URL-safe: only characters of [A-Za-z0-9._~-]';
}

/** Purpose of an encrypted secret: one that is copied to another webhook cannot be decrypted there. */
export const sealPurpose = (uid: string): string => `webhook ${uid}`;

/** Encrypts the secret of a webhook. */
export const sealWebhookSecret = (vault: Vault, uid: string, secret: string): Buffer =>
  vault.seal(sealPurpose(uid), secret);

/** Decrypts the secret of a webhook. Throws if it was encrypted with another key; the message names only the webhook. */
export function openWebhookSecret(vault: Vault, uid: string, sealed: Buffer): string {
  try {
    return vault.open(sealPurpose(uid), sealed);
  } catch {
    throw new Error(`the secret of the webhook ${uid} was sealed with another key: rotate it`);
  }
}
