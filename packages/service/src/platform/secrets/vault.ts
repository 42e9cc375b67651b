/** Encrypts secrets for the database under keys that are not in the database. */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { createSecretFile, readSecretFile } from '../store/secret-file.ts';

/** The one cipher of stored secrets. */
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
  /** Id of the key that encrypts, which reveals nothing of the key: 16 hex digits. */
  readonly keyId: string;
  /** Ids of all keys that decrypt: the key that encrypts first, then earlier keys. */
  readonly keyIds: readonly string[];
  /** Encrypts a text. `purpose` names its owner: a text that was encrypted for one owner cannot be decrypted for another. */
  seal(purpose: string, text: string): Buffer;
  /**
   * Decrypts a text. Throws if this process does not have its key, if it was encrypted for another purpose, or if it
   * was changed.
   */
  open(purpose: string, sealed: Buffer): string;
  /** Reads the keys again, because another process may have added one. */
  refresh(): Promise<void>;
}

type Keys = readonly [Buffer, ...Buffer[]];

const idOf = (key: Buffer): string =>
  createHash('sha256').update('runyard vault key id').update(key).digest('hex').slice(0, 16);

/** Creates a vault that encrypts with the first of the keys, 32 bytes each, and decrypts with all of them. */
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
    refresh: async () => {
      keys = await read();
    },
  };
}

/** GCM detects a wrong key, so the keys are tried in turn. */
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

/** Opens the vault with the keys of RUNYARD_SECRETS_KEY, or of `{data dir}/secrets-key`; undefined if there is neither. */
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

/** Opens the vault with the keys of the setting or of the file; the first call creates the file. */
export async function openVault(dataDir: string, setting: string | undefined): Promise<Vault> {
  const known = await readVault(dataDir, setting);
  if (known) return known;
  const file = secretsKeyFile(dataDir);
  return vaultOf(await createSecretFile(file, newVaultKey()), file, setting);
}

/** Returns the id of a key that is written as in the key file. */
export const idOfKey = (text: string): string => idOf(Buffer.from(text, 'base64'));

/** Makes a key, written as in the key file and in the setting. */
export const newVaultKey = (): string => randomBytes(32).toString('base64');

function vaultOf(text: string, file: string, setting: string | undefined): Vault {
  const keys = parseKeys(text, file);
  // A setting does not change while the process runs. If the file was deleted, the process keeps its keys.
  if (setting !== undefined) return vaultWith(keys, async () => keys);
  let last = keys;
  return vaultWith(keys, async () => {
    const now = await readSecretFile(file);
    if (now !== undefined) last = parseKeys(now, file);
    return last;
  });
}

/** Returns the keys of a text: base64 of 32 bytes each, on lines or with commas between them. */
function parseKeys(text: string, file: string): Keys {
  const [first, ...others] = keyTexts(text).map((key) => Buffer.from(key, 'base64'));
  if (first === undefined || [first, ...others].some((key) => key.length !== 32))
    throw new Error(`${file} does not hold 32 bytes as base64`);
  return [first, ...others];
}
