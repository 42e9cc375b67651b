/** Changes the key that encrypts stored secrets, while the service runs. */
import { stat } from 'node:fs/promises';
import { tryLockFile } from '@runyard/system/file-lock';
import { readSecretFile, replaceSecretFile } from '../store/secret-file.ts';
import { idOfKey, newVaultKey, secretsKeyFile } from './vault.ts';

/** Longer than the 24 hours for which answers to requests are stored, because these answers also contain sealed secrets. */
const keepEarlierKeysMs = 25 * 60 * 60 * 1000;

/**
 * `rotated`: the new key is the first of the file. `no_file`: nothing was encrypted in this data folder, or the key is a setting.
 * `busy`: another process changes the file.
 */
export type KeyRotation =
  | { readonly kind: 'rotated'; readonly file: string; readonly keyId: string; readonly previousKeyId: string }
  | { readonly kind: 'no_file' | 'busy'; readonly file: string };

const keysOf = (text: string): string[] => text.split(/\s+/).filter((key) => key !== '');

/**
 * Writes a new key before the file's earlier keys. The file is replaced as a whole, so after a crash it is either the old file or the new
 * file, and both can decrypt all secrets. Running services read the file again within seconds and encrypt their rows again.
 */
export async function rotateKey(dataDir: string): Promise<KeyRotation> {
  const file = secretsKeyFile(dataDir);
  const lock = tryLockFile(`${file}.lock`);
  if (!lock) return { kind: 'busy', file };
  try {
    const text = await readSecretFile(file);
    if (text === undefined) return { kind: 'no_file', file };
    const earlier = keysOf(text);
    const key = newVaultKey();
    await replaceSecretFile(file, [key, ...earlier].join('\n'));
    return { kind: 'rotated', file, keyId: idOfKey(key), previousKeyId: idOfKey(earlier[0] ?? '') };
  } finally {
    lock.release();
  }
}

/**
 * Removes the earlier keys from the file, 25 hours after its last change. Call it only after every row is encrypted with the first key.
 * Returns false if there are no earlier keys, it is too early, or another process changes the file.
 */
export async function forgetEarlierKeys(dataDir: string, now: Date): Promise<boolean> {
  const file = secretsKeyFile(dataDir);
  const lock = tryLockFile(`${file}.lock`);
  if (!lock) return false;
  try {
    const [key, ...earlier] = keysOf((await readSecretFile(file)) ?? '');
    if (key === undefined || earlier.length === 0) return false;
    if (now.getTime() - (await stat(file)).mtimeMs < keepEarlierKeysMs) return false;
    await replaceSecretFile(file, key);
    return true;
  } finally {
    lock.release();
  }
}
