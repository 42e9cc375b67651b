import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, stat, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { describeBlobStore } from '../../../../test/blob-store.ts';
import { collectMeasurements } from '../../../../test/metrics.ts';
import type { BlobStore } from './blobs.ts';
import { openFolderBlobs } from './folder-blobs.ts';
import { guardBlobs } from './guarded-blobs.ts';

let folder: string;
let blobs: BlobStore;
beforeEach(async () => {
  folder = newFolder();
  blobs = await openFolderBlobs(folder);
});

const limits = { maxBytes: 1000 };
async function* brokenBody() {
  yield Buffer.from('half');
  throw new Error('connection lost');
}
const incoming = () => readdir(path.join(folder, 'incoming'));

describeBlobStore('a folder', async () => blobs);

test('a blob folder stores no part of a body that is too large or incomplete, or whose key already has a blob', async () => {
  await expect(blobs.put('k', brokenBody(), limits)).rejects.toThrow('connection lost');
  expect(await blobs.put('k', Readable.from([Buffer.alloc(2000)]), limits)).toEqual({ outcome: 'too_large' });
  await blobs.putIfAbsent('k', Readable.from([Buffer.from('first')]));
  expect(await blobs.putIfAbsent('k', Readable.from([Buffer.from('second')]))).toBe(false);
  expect(await incoming()).toEqual([]);
});

test('the measured blob folder counts each operation by its result, and the stored bytes', async () => {
  const measured = collectMeasurements();
  const store = guardBlobs(blobs, {});
  await store.put('k', Readable.from([Buffer.alloc(7)]), limits);
  await store.put('large', Readable.from([Buffer.alloc(2000)]), limits);
  await expect(store.put('cut', brokenBody(), limits)).rejects.toThrow('connection lost');
  (await store.get('k'))?.stream.destroy();
  await store.get('missing');
  await store.delete('k');
  expect(measured('runyard_blob_operations_total').map(({ labels }) => Object.values(labels).join(' '))).toEqual([
    'put done',
    'put too_large',
    'put failed',
    'get done',
    'get missing',
    'delete done',
  ]);
  expect(measured('runyard_blob_written_bytes_total')).toEqual([{ labels: {}, value: 7 }]);
});

test('a reader can read a blob to its end if the blob is replaced or deleted meanwhile', async () => {
  const body = Buffer.alloc(300_000, 'a');
  await blobs.put('k', Readable.from([body]), { maxBytes: 1e6 });
  const blob = await blobs.get('k');
  await blobs.put('k', Readable.from([Buffer.from('new')]), limits);
  await blobs.delete('k');
  expect(blob && (await buffer(blob.stream)).equals(body)).toBe(true);
});

test('the list of a blob folder contains no files that are not blobs', async () => {
  await blobs.put('a', Readable.from([]), limits);
  const [fan = ''] = await readdir(path.join(folder, 'objects'));
  await writeFile(path.join(folder, 'objects', fan, '.nfs00000000024e0002'), '');
  await writeFile(path.join(folder, 'objects', '.marker'), '');
  const found: string[] = [];
  for await (const { key } of blobs.list()) found.push(key);
  expect(found).toEqual(['a']);
});

test('a blob folder stores no file outside of the folder, whatever the key is', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: fc.constantFrom('.', '/', 'a', '\\', '\0', '+'), maxLength: 12 }),
      async (key) => {
        await blobs.put(key, Readable.from([]), limits).catch(() => undefined);
        const beside = await readdir(path.dirname(folder));
        return beside.includes(path.basename(folder)) && (await readdir(folder)).length === 2;
      },
    ),
    { numRuns: 100 },
  );
  for await (const { key } of blobs.list()) expect(await blobs.stat(key)).toBeDefined();
});

test('a blob folder makes files that only their owner can read', async () => {
  await blobs.put('k', Readable.from([]), limits);
  const [fan = ''] = await readdir(path.join(folder, 'objects'));
  expect((await stat(path.join(folder, 'objects', fan, 'k'))).mode & 0o777).toBe(0o600);
});

test('opening a blob folder deletes the unfinished uploads of dead processes only', async () => {
  const program = `
    import { openFolderBlobs } from ${JSON.stringify(path.join(import.meta.dirname, 'folder-blobs.ts'))};
    const blobs = await openFolderBlobs(process.env.FOLDER);
    await blobs.put('k', (async function* () { yield Buffer.from('half'); console.log('in the middle'); await new Promise((resolve) => setTimeout(resolve, 60000)); })(), { maxBytes: 100 });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, FOLDER: folder },
  });
  await once(child.stdout, 'data');
  await openFolderBlobs(folder);
  expect(await incoming()).toHaveLength(1);
  child.kill('SIGKILL');
  await once(child, 'close');
  await openFolderBlobs(folder);
  expect(await incoming()).toEqual([]);
  expect(await blobs.stat('k')).toBeUndefined();
});

test.each<[string, () => Promise<unknown>]>([
  ['opening', () => openFolderBlobs(folder)],
  [
    'listing',
    async () => {
      for await (const _ of blobs.list());
    },
  ],
])(
  '%s a blob folder deletes unfinished uploads of other containers if they are older than a day',
  async (_how, work) => {
    const [fresh, old] = ['1.1.1.aa', '1.1.1.bb'];
    for (const name of [fresh, old]) await writeFile(path.join(folder, 'incoming', name), '');
    const twoDaysAgo = new Date(Date.now() - 48 * 3600 * 1000);
    await utimes(path.join(folder, 'incoming', old), twoDaysAgo, twoDaysAgo);
    await work();
    expect(await incoming()).toEqual([fresh]);
  },
);
