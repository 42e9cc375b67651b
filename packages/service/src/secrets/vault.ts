/** Seals secrets for the database under one key that is not in the database. */
import { createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { createKeptFile, readKeptFile } from '../store/kept-file.ts';
import { openText, sealText } from './aes-gcm.ts';

export interface Vault {
  /** Names the key and reveals nothing of it: 16 hex digits. */
  readonly keyId: string;
  /** Seals a text. `purpose` names its owner: a text that was sealed for one owner cannot be opened for another. */
  seal(purpose: string, text: string): Buffer;
  /** Opens a sealed text. Throws if it was sealed with another key or for another purpose, or was changed. */
  open(purpose: string, sealed: Buffer): string;
}

/** Makes a vault with the given key of 32 bytes. */
export const makeVault = (key: Buffer): Vault => ({
  keyId: createHash('sha256').update('runyard vault key id').update(key).digest('hex').slice(0, 16),
  seal: (purpose, text) => sealText(key, purpose, text),
  open: (purpose, sealed) => openText(key, purpose, sealed),
});

/** Returns the path of the file that keeps the key where RUNYARD_SECRETS_KEY is not set. */
export const secretsKeyFile = (dataDir: string): string => path.join(dataDir, 'secrets-key');

/** Opens the vault with the key of RUNYARD_SECRETS_KEY, or of `{data dir}/secrets-key`; undefined where there is neither. */
export async function readVault(dataDir: string, setting: string | undefined): Promise<Vault | undefined> {
  const file = secretsKeyFile(dataDir);
  const text = setting ?? (await readKeptFile(file));
  return text === undefined ? undefined : vaultOf(text, file);
}

/** Does the same; the first call creates the file. */
export async function openVault(dataDir: string, setting: string | undefined): Promise<Vault> {
  const known = await readVault(dataDir, setting);
  if (known) return known;
  const file = secretsKeyFile(dataDir);
  return vaultOf(await createKeptFile(file, randomBytes(32).toString('base64')), file);
}

function vaultOf(text: string, file: string): Vault {
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) throw new Error(`${file} does not hold 32 bytes as base64`);
  return makeVault(key);
}
