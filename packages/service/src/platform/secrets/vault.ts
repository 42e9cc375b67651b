/** Encrypts secrets for the database under keys that are not in the database. */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import path from 'node:path';
import { createSecretFile, readSecretFile } from '../store/secret-file.ts';

/** The cipher of all stored secrets. */
const algorithm = 'aes-256-gcm';
/** Random nonces of 96 bits are safe for up to 2^32 texts under one key (NIST SP 800-38D, 8.2 and 8.3). An installation has far fewer. */
const nonceBytes = 12;
const tagBytes = 16;

/** Encrypts a text under a key of 32 bytes. Returns nonce, tag and ciphertext. Decrypting needs the same `purpose`. */
export function sealText(key: Buffer, purpose: string, text: string): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(purpose));
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]);
}

/** Decrypts the result of `sealText`. Throws if the key or the purpose is another one, or if the bytes were changed. */
export function openText(key: Buffer, purpose: string, sealed: Buffer): string {
  const nonce = sealed.subarray(0, nonceBytes);
  const tag = sealed.subarray(nonceBytes, nonceBytes + tagBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(purpose))
    .setAuthTag(tag);
  return decipher.update(sealed.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8');
}

export interface Vault {
  /** Id of the key that encrypts: 16 hex digits, which reveal nothing about the key. */
  readonly keyId: string;
  /** Ids of all keys that decrypt: first the key that also encrypts, then the earlier keys. */
  readonly keyIds: readonly string[];
  /** Encrypts a text. `purpose` names the owner of the text: a text that was encrypted for one owner cannot be decrypted for another owner. */
  seal(purpose: string, text: string): Buffer;
  /**
   * Decrypts a text. Throws if this process does not have the key of the text, or if the text was encrypted for another purpose or
   * changed.
   */
  open(purpose: string, sealed: Buffer): string;
  /**
   * Returns a key of 32 bytes for another use, derived from each key of the vault (HKDF, RFC 5869), the earliest key first. A derived key
   * reveals neither the key of the vault nor the keys of other uses.
   */
  derive(use: string): readonly [Buffer, ...Buffer[]];
  /** Reads the keys again, because another process may have added one. */
  refresh(): Promise<void>;
}

type Keys = readonly [Buffer, ...Buffer[]];

const idOf = (key: Buffer): string =>
  createHash('sha256').update('runyard vault key id').update(key).digest('hex').slice(0, 16);

/** Creates a vault that encrypts with the first key and decrypts with all keys. Each key has 32 bytes. */
export const makeVault = (...keys: [Buffer, ...Buffer[]]): Vault => vaultWith(keys, async () => keys);

function vaultWith(first: Keys, read: () => Promise<Keys>): Vault {
  let keys = first;
  return {
    get keyId() {
      return idOf(keys[0]);
    },
    get keyIds() {
      return keys.map(idOf);
    },
    seal: (purpose, text) => sealText(keys[0], purpose, text),
    open: (purpose, sealed) => openWithOneOf(keys, purpose, sealed),
    derive: (use) => {
      const derived = (key: Buffer) => Buffer.from(hkdfSync('sha256', key, '', use, 32));
      const [key, ...earlier] = keys;
      const [earliest = key, ...later] = earlier.toReversed();
      return [derived(earliest), ...[...later, ...(earlier.length > 0 ? [key] : [])].map(derived)];
    },
    refresh: async () => {
      keys = await read();
    },
  };
}

/** Decrypts with the first key that fits. GCM detects a wrong key, so the function can try one key after the other. */
function openWithOneOf([key, ...others]: Keys, purpose: string, sealed: Buffer): string {
  try {
    return openText(key, purpose, sealed);
  } catch (error) {
    const [next, ...rest] = others;
    if (next === undefined) throw error;
    return openWithOneOf([next, ...rest], purpose, sealed);
  }
}

/**
 * Returns the path of the key file, which is used if RUNYARD_SECRETS_KEY is not set. The file has one key on each line, the present
 * key first.
 */
export const secretsKeyFile = (dataDir: string): string => path.join(dataDir, 'secrets-key');

/**
 * Opens the vault with the keys of RUNYARD_SECRETS_KEY, or of the file `{data dir}/secrets-key`. Returns undefined if there is neither
 * the setting nor the file.
 */
export async function readVault(dataDir: string, setting: string | undefined): Promise<Vault | undefined> {
  const file = secretsKeyFile(dataDir);
  const text = setting ?? (await readSecretFile(file));
  return text === undefined ? undefined : vaultOf(text, file, setting);
}

/** Returns each key of the setting or of the file as text, so that it can be redacted in the output of agents. */
export async function readKeyTexts(dataDir: string, setting: string | undefined): Promise<string[]> {
  return keyTexts(setting ?? (await readSecretFile(secretsKeyFile(dataDir))) ?? '');
}

const keyTexts = (text: string): string[] => text.split(/[\s,]+/).filter((key) => key !== '');

/** Opens the vault with the keys of the setting or of the file. If there is neither, creates the file with a new key. */
export async function openVault(dataDir: string, setting: string | undefined): Promise<Vault> {
  const known = await readVault(dataDir, setting);
  if (known) return known;
  const file = secretsKeyFile(dataDir);
  return vaultOf(await createSecretFile(file, newVaultKey()), file, setting);
}

/** Returns the id of a key. `text` is the key as the key file contains it. */
export const idOfKey = (text: string): string => idOf(Buffer.from(text, 'base64'));

/** Makes a new key and returns it in the form of the key file and of the setting. */
export const newVaultKey = (): string => randomBytes(32).toString('base64');

function vaultOf(text: string, file: string, setting: string | undefined): Vault {
  const keys = parseKeys(text, file);
  // A setting does not change while the process runs, so `refresh` returns the same keys. If the key file was deleted, `refresh` returns
  // the keys that were read last.
  if (setting !== undefined) return vaultWith(keys, async () => keys);
  let last = keys;
  return vaultWith(keys, async () => {
    const now = await readSecretFile(file);
    if (now !== undefined) last = parseKeys(now, file);
    return last;
  });
}

/** Returns the keys in a text. Each key is 32 bytes in base64. White space or commas separate the keys. */
function parseKeys(text: string, file: string): Keys {
  const [first, ...others] = keyTexts(text).map((key) => Buffer.from(key, 'base64'));
  if (first === undefined || [first, ...others].some((key) => key.length !== 32))
    throw new Error(`${file} does not hold 32 bytes as base64`);
  return [first, ...others];
}
