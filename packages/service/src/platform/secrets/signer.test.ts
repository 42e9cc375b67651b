import { createHmac, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../test/database.ts';
import { lockInstallation, separateCopy } from '../installation/installation.ts';
import type { Database } from '../store/database/database.ts';
import { checkSignedUrl, signUrl } from './signed-urls.ts';
import { openSigner } from './signer.ts';
import { makeVault, type Vault } from './vault.ts';

const own = closeAtEnd(await createTestDatabase());
const db: Database = own.db;

const week = 7 * 24 * 60 * 60 * 1000;
const [oldKey, newKey] = [randomBytes(32), randomBytes(32)];
/** Opens the signer as a process of the installation does. */
async function openSignerAt(vault: Vault, now: () => number) {
  const { id } = await db.transaction(lockInstallation);
  return await openSigner(db, vault, id, now);
}
const opened = (at = 100 * week, keys: [Buffer, ...Buffer[]] = [oldKey]) => openSignerAt(makeVault(...keys), () => at);

test('a signature is valid for its purpose and text in every process, and for at most two weeks', async () => {
  const signature = (await opened()).sign('url', 'text');
  const isValid = async (at: number, purpose = 'url', text = 'text') =>
    (await opened(at)).verify(purpose, text, signature);
  expect(await isValid(100 * week)).toBe(true);
  expect(await isValid(101 * week)).toBe(true);
  expect(await isValid(100 * week - 1)).toBe(true);
  expect(await isValid(102 * week)).toBe(false);
  expect(await isValid(100 * week, 'cursor')).toBe(false);
  expect(await isValid(100 * week, 'url', 'texts')).toBe(false);
});

test('while a rotation of the secrets key spreads, each process accepts the signatures of all others', async () => {
  const processes = [await opened(week, [oldKey]), await opened(week, [newKey, oldKey])];
  for (const signer of processes)
    for (const other of processes) expect(other.verify('url', 'a', signer.sign('url', 'a'))).toBe(true);
  const after = await opened(week, [newKey]);
  expect(after.verify('url', 'a', processes[0]?.sign('url', 'a') ?? '')).toBe(false);
  expect(processes[1]?.verify('url', 'a', after.sign('url', 'a'))).toBe(true);
});

test('a name stays the same over weeks and changes with the secrets key', async () => {
  const name = (await opened()).nameOf('cache', 'a');
  expect((await opened(200 * week)).nameOf('cache', 'a')).toBe(name);
  expect((await opened(100 * week, [newKey])).nameOf('cache', 'a')).not.toBe(name);
});

test('no table has a key that signs, and a restored copy has other keys', async () => {
  const signature = (await opened()).sign('url', 'a');
  expect(await db.query('SELECT FROM server_secrets')).toEqual([]);
  await db.onOwnConnection((client) => separateCopy(client));
  expect((await opened()).verify('url', 'a', signature)).toBe(false);
});

test('a process accepts the key of an earlier version for an hour', async () => {
  await db.query(`INSERT INTO server_secrets VALUES ('signing', $1)`, [randomBytes(32)]);
  let now = 100 * week;
  const [{ value = Buffer.of() } = {}] = await db.query<{ value: Buffer }>('SELECT value FROM server_secrets');
  const signature = createHmac('sha256', value).update('3:url').update('a').digest('base64url');
  const signer = await openSignerAt(makeVault(oldKey), () => now);
  expect(signer.verify('url', 'a', signature)).toBe(true);
  now += 60 * 60 * 1000;
  expect(signer.verify('url', 'a', signature)).toBe(false);
  await db.query('DELETE FROM server_secrets');
});

test('a signed URL ends at most 20 minutes from now', async () => {
  const signer = await opened();
  const target = { method: 'GET', path: '/blobs/a' } as const;
  const query = (at: number) => {
    const { searchParams } = new URL(signUrl(signer, 'http://a', target, at).url);
    return { expires: searchParams.get('expires') ?? '', signature: searchParams.get('signature') ?? '' };
  };
  const now = 100 * week;
  expect(checkSignedUrl(signer, target, query(now), now)).toBe('valid');
  expect(checkSignedUrl(signer, target, query(now + 4 * 60_000), now)).toBe('valid');
  expect(checkSignedUrl(signer, target, query(now + 6 * 60_000), now)).toBe('wrong');
  expect(checkSignedUrl(signer, target, query(Date.UTC(5138)), now)).toBe('wrong');
});
