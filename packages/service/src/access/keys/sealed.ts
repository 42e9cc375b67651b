/** Text that a row keeps, and that only who sent a certain secret can read: the service itself stores neither. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

/** RFC 5869. The secret is 32 random bytes, or 20 characters at least: no stretching. */
const keyOf = (secret: string, use: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', use, 32));

/** Base64url of nonce, tag and ciphertext. `use` keeps what one secret seals for two purposes apart. */
export function seal(text: string, secret: string, use: string): string {
  const nonce = randomBytes(nonceBytes);
  const sealing = createCipheriv(cipher, keyOf(secret, use), nonce);
  const body = Buffer.concat([sealing.update(text, 'utf8'), sealing.final()]);
  return Buffer.concat([nonce, sealing.getAuthTag(), body]).toString('base64url');
}

/** Throws where secret or use are other ones, or the text was changed. */
export function unseal(sealed: string, secret: string, use: string): string {
  const bytes = Buffer.from(sealed, 'base64url');
  const opening = createDecipheriv(cipher, keyOf(secret, use), bytes.subarray(0, nonceBytes), {
    authTagLength: tagBytes,
  });
  opening.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  return Buffer.concat([opening.update(bytes.subarray(nonceBytes + tagBytes)), opening.final()]).toString('utf8');
}
