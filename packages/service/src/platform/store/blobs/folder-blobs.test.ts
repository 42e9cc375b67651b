import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { BlobStore } from './blobs.ts';
import { openFolderBlobs } from './folder-blobs.ts';

let folder: string;
let blobs: BlobStore;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-blobs-'));
  blobs = await openFolderBlobs(folder);
});
afterEach(() => rm(folder, { recursive: true }));

const limits = { maxBytes: 1000 };
const incoming = () => readdir(path.join(folder, 'incoming'));
const read = async (key: string, range?: { start: number; end: number }) => {
  const blob = await blobs.get(key, range);
  return blob && { sizeBytes: blob.sizeBytes, text: await text(blob.stream) };
};

test('returns a blob as it was stored, with its size and SHA-256', async () => {
  const sha256 = createHash('sha256').update('hello').digest();
  expect(await blobs.put('artifacts/1', Readable.from([Buffer.from('hel'), Buffer.from('lo')]), limits)).toEqual({
    outcome: 'stored',
    sizeBytes: 5,
    sha256,
  });
  expect(await read('artifacts/1')).toEqual({ sizeBytes: 5, text: 'hello' });
  expect(await blobs.stat('artifacts/1')).toEqual({ sizeBytes: 5 });
});

test('stores an empty blob', async () => {
  await blobs.put('empty', Readable.from([]), limits);
  expect(await read('empty')).toEqual({ sizeBytes: 0, text: '' });
});

test('returns undefined for a missing blob, and ignores its deletion', async () => {
  expect(await blobs.get('none')).toBeUndefined();
  expect(await blobs.stat('none')).toBeUndefined();
  await blobs.delete('none');
});

test('reads a range with the numbers of HTTP, and nothing beyond the end', async () => {
  await blobs.put('r', Readable.from([Buffer.from('0123456789')]), limits);
  expect(await read('r', { start: 2, end: 4 })).toEqual({ sizeBytes: 10, text: '234' });
  expect(await read('r', { start: 8, end: 100 })).toEqual({ sizeBytes: 10, text: '89' });
  expect(await read('r', { start: 10, end: 20 })).toEqual({ sizeBytes: 10, text: '' });
});

test('stops reading a body over the limit and keeps the earlier blob', async () => {
  await blobs.put('k', Readable.from([Buffer.from('before')]), limits);
  let chunks = 0;
  const endless = (async function* () {
    for (;;) {
      chunks += 1;
      yield Buffer.alloc(400);
    }
  })();
  expect(await blobs.put('k', endless, limits)).toEqual({ outcome: 'too_large' });
  expect(chunks).toBe(3);
  expect(await read('k')).toEqual({ sizeBytes: 6, text: 'before' });
  expect(await incoming()).toEqual([]);
});

test('stores a body of exactly the limit', async () => {
  expect(await blobs.put('k', Readable.from([Buffer.alloc(1000)]), limits)).toMatchObject({
    outcome: 'stored',
    sizeBytes: 1000,
  });
});

test('throws for a body that is cut, and keeps the earlier blob', async () => {
  await blobs.put('k', Readable.from([Buffer.from('before')]), limits);
  const broken = (async function* () {
    yield Buffer.from('half');
    throw new Error('connection lost');
  })();
  await expect(blobs.put('k', broken, limits)).rejects.toThrow('connection lost');
  expect(await read('k')).toEqual({ sizeBytes: 6, text: 'before' });
  expect(await incoming()).toEqual([]);
});

test('lets a reader finish a blob that is replaced or deleted meanwhile', async () => {
  const body = Buffer.alloc(300_000, 'a');
  await blobs.put('k', Readable.from([body]), { maxBytes: 1e6 });
  const blob = await blobs.get('k');
  await blobs.put('k', Readable.from([Buffer.from('new')]), limits);
  await blobs.delete('k');
  expect(blob && (await buffer(blob.stream)).equals(body)).toBe(true);
});

test('stores exactly one of several concurrent puts of a key, complete', async () => {
  await Promise.all(
    Array.from('abcdefgh', (letter) =>
      blobs.put('k', Readable.from([Buffer.alloc(500, letter), Buffer.alloc(500, letter)]), limits),
    ),
  );
  expect((await read('k'))?.text).toMatch(/^(.)\1{999}$/);
});

test('lists every key with its size and time', async () => {
  const before = Date.now() - 1000;
  for (const key of ['a', 'b/c.txt', 'b/d/e-1_2']) await blobs.put(key, Readable.from([Buffer.from(key)]), limits);
  const found: { key: string; sizeBytes: number }[] = [];
  for await (const { key, sizeBytes, storedAt } of blobs.list()) {
    found.push({ key, sizeBytes });
    expect(storedAt.getTime()).toBeGreaterThan(before);
  }
  expect(found.sort((one, other) => one.key.localeCompare(other.key))).toEqual([
    { key: 'a', sizeBytes: 1 },
    { key: 'b/c.txt', sizeBytes: 7 },
    { key: 'b/d/e-1_2', sizeBytes: 9 },
  ]);
});

test('ignores files that are not blobs', async () => {
  await blobs.put('a', Readable.from([]), limits);
  const [fan = ''] = await readdir(path.join(folder, 'objects'));
  await writeFile(path.join(folder, 'objects', fan, '.nfs00000000024e0002'), '');
  await writeFile(path.join(folder, 'objects', '.marker'), '');
  const found: string[] = [];
  for await (const { key } of blobs.list()) found.push(key);
  expect(found).toEqual(['a']);
});

test.each([
  '',
  '.',
  '..',
  'a/../b',
  '../a',
  '/a',
  'a/',
  'a//b',
  'a/.hidden',
  'a\0b',
  'a\\b',
  'a+b',
  'ä',
  'a b',
  'x'.repeat(201),
])('refuses the key %j', async (key) => {
  await expect(blobs.put(key, Readable.from([]), limits)).rejects.toThrow(RangeError);
  await expect(blobs.get(key)).rejects.toThrow(RangeError);
  await expect(blobs.stat(key)).rejects.toThrow(RangeError);
  await expect(blobs.delete(key)).rejects.toThrow(RangeError);
});

test('never reads or writes a file outside the folder', async () => {
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

test('makes files that only their owner can read', async () => {
  await blobs.put('k', Readable.from([]), limits);
  const [fan = ''] = await readdir(path.join(folder, 'objects'));
  expect((await stat(path.join(folder, 'objects', fan, 'k'))).mode & 0o777).toBe(0o600);
});

test('deletes at opening the unfinished uploads of dead processes only', async () => {
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

test('deletes at opening the unfinished uploads of other containers after a day', async () => {
  const [fresh, old] = ['1.1.1.aa', '1.1.1.bb'];
  for (const name of [fresh, old]) await writeFile(path.join(folder, 'incoming', name), '');
  const twoDaysAgo = new Date(Date.now() - 48 * 3600 * 1000);
  await utimes(path.join(folder, 'incoming', old), twoDaysAgo, twoDaysAgo);
  await openFolderBlobs(folder);
  expect(await incoming()).toEqual([fresh]);
});
