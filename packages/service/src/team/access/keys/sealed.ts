/**
 * Encrypts text so that only the sender of a certain secret can read it. The service stores neither the text nor the
 * secret.
 */
import { hkdfSync } from 'node:crypto';
import { openText, sealText } from '../../../platform/secrets/vault.ts';

/** Derives the key by RFC 5869. The secret has 32 random bytes, or at least 20 characters, so a slow derivation is not needed. */
const keyOf = (secret: string, use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', use, 32));

/**
 * Returns the encrypted text as base64url. `use` names a purpose: a text for one use cannot be decrypted for another use of the same
 * secret.
 */
export const seal = (text: string, secret: string, use: string): string =>
  sealText(keyOf(secret, use), use, text).toString('base64url');

/** Decrypts a text. Throws if the text was encrypted with another secret or use, or if it was changed. */
export const unseal = (sealed: string, secret: string, use: string): string =>
  openText(keyOf(secret, use), use, Buffer.from(sealed, 'base64url'));
