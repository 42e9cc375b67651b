/** Changes the key that encrypts stored secrets, while the service runs. */
import { stat } from 'node:fs/promises';
import { tryLockFile } from '@runyard/system/file-lock';
import { readSecretFile, replaceSecretFile } from '../store/secret-file.ts';
import { idOfKey, newVaultKey, secretsKeyFile } from './vault.ts';

/**
 * The time for which earlier keys stay in the file. The database stores the answers to requests for 24 hours, and some of them contain
 * secrets that an earlier key encrypted. So the time is longer than 24 hours.
 */
const keepEarlierKeysMs = 25 * 60 * 60 * 1000;

/**
 * `rotated`: the new key is the first key of the file. `no_file`: there is no key file, because nothing was encrypted yet or the key
 * comes from a setting.
 * `busy`: another process changes the file.
 */
export type KeyRotation =
  | { readonly kind: 'rotated'; readonly file: string; readonly keyId: string; readonly previousKeyId: string }
  | { readonly kind: 'no_file' | 'busy'; readonly file: string };

const keysOf = (text: string): string[] => text.split(/\s+/).filter((key) => key !== '');

/**
 * Writes a new key to the beginning of the key file. The file is replaced as a whole. So after a crash, either the old or the new file
 * exists, and each of the two files has the keys of all secrets. Running services read the file again within seconds and then encrypt all
 * rows with the new key.
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
 * Removes the earlier keys from the file if the last change of the file was at least 25 hours ago. Call this only after all rows were
 * encrypted with the first key. Returns false if there are no earlier keys, the last change is too recent, or another process changes
 * the file.
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
