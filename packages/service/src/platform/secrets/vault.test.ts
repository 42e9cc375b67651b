import { randomBytes } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { makeVault, openVault } from './vault.ts';

let folder: string;
beforeEach(() => {
  folder = newFolder();
});

test('a vault decrypts a text only with the key and for the purpose with which the text was encrypted', () => {
  const vault = makeVault(randomBytes(32));
  const sealed = vault.seal('a', 'sécret');
  expect(sealed.toString('latin1')).not.toContain('cret');
  expect(vault.open('a', sealed)).toBe('sécret');
  expect(() => vault.open('b', sealed)).toThrow();
  expect(() => makeVault(randomBytes(32)).open('a', sealed)).toThrow();
});

test('a vault refuses an encrypted text if one byte of the text was changed or the end of the text was removed', () => {
  const vault = makeVault(randomBytes(32));
  const sealed = vault.seal('a', 'secret');
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = Buffer.from(sealed);
    changed[index] = (changed[index] ?? 0) ^ 1;
    expect(() => vault.open('a', changed)).toThrow();
    expect(() => vault.open('a', sealed.subarray(0, index))).toThrow();
  }
});

test('a vault encrypts the same text to different bytes each time', () => {
  const vault = makeVault(randomBytes(32));
  expect(vault.seal('a', 'b')).not.toEqual(vault.seal('a', 'b'));
});

test('if several callers open the vault of a new folder at once, all use one key file, which has mode 0600', async () => {
  const vaults = await Promise.all([1, 2, 3, 4].map(() => openVault(folder, undefined)));
  expect(new Set(vaults.map(({ keyId }) => keyId)).size).toBe(1);
  const file = path.join(folder, 'secrets-key');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(Buffer.from(await readFile(file, 'utf8'), 'base64')).toHaveLength(32);
});

test('the vault uses the key of the setting instead of the key file, and without a setting it refuses a broken file', async () => {
  await writeFile(path.join(folder, 'secrets-key'), 'too short\n');
  await expect(openVault(folder, undefined)).rejects.toThrow('32 bytes');
  const key = randomBytes(32);
  expect((await openVault(folder, key.toString('base64'))).keyId).toBe(makeVault(key).keyId);
});
