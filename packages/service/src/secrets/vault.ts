/** Secrets at rest: AES-256-GCM under one key that is not in the database. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { createKeptFile, readKeptFile } from '../store/kept-file.ts';

export interface Vault {
  /** Names the key without telling anything of it: 16 hex digits. */
  readonly keyId: string;
  /** `purpose` says whose secret it is: what was sealed for one place cannot be opened as another's. */
  seal(purpose: string, text: string): Buffer;
  /** Throws where it was sealed with another key or for another purpose, or was changed. */
  open(purpose: string, sealed: Buffer): string;
}

/** NIST SP 800-38D, 8.2: 96 bits, random, far fewer than 2^32 seals under one key. */
const nonceBytes = 12;
const tagBytes = 16;

/** A vault with the given key of 32 bytes. */
export function makeVault(key: Buffer): Vault {
  return {
    keyId: createHash('sha256').update('runyard vault key id').update(key).digest('hex').slice(0, 16),
    seal: (purpose, text) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(purpose));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
    },
    open: (purpose, sealed) => {
      const nonce = sealed.subarray(0, nonceBytes);
      const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes);
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(purpose))
        .setAuthTag(tag);
      return decipher.update(sealed.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8');
    },
  };
}

/** The vault of the setting RUNYARD_SECRETS_KEY, else of `{data dir}/secrets-key`, which the first call makes. */
export async function openVault(dataDir: string, setting: string | undefined): Promise<Vault> {
  const file = path.join(dataDir, 'secrets-key');
  const text =
    setting ?? (await readKeptFile(file)) ?? (await createKeptFile(file, randomBytes(32).toString('base64')));
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) throw new Error(`${file} does not hold 32 bytes as base64`);
  return makeVault(key);
}
