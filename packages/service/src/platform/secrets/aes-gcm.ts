/** AES-256-GCM, the one cipher of stored secrets. */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const algorithm = 'aes-256-gcm';
/** NIST SP 800-38D, 8.2: 96 random bits are enough for far fewer than 2^32 texts under one key. */
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts a text under a key of 32 bytes. Returns nonce, tag and ciphertext. Decrypting needs the same `purpose`. */
export function sealText(key: Buffer, purpose: string, text: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(purpose));
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
}

/** Decrypts what `sealText` returned. Throws if the key or the purpose is another one, or if the bytes were changed. */
export function openText(key: Buffer, purpose: string, sealed: Buffer): string {
  const nonce = sealed.subarray(0, nonceBytes);
  const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(tag);
  return decipher.update(sealed.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8');
}
