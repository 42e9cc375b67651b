import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { moveBlobs } from '../transfer/data-folder.ts';
import type { BlobStore } from './blobs.ts';
import { openFolderBlobs } from './folder-blobs.ts';
import { createBlobMarker, readBlobMarker } from './marker.ts';
import { copyBlobs, readBoth } from './move-blobs.ts';

let folder: string;
let old: BlobStore;
let present: BlobStore;
/** The store of a service while blobs move. */
let both: BlobStore;
beforeEach(async () => {
  folder = newFolder();
  old = await openFolderBlobs(path.join(folder, 'old'));
  present = await openFolderBlobs(path.join(folder, 'present'));
  both = readBoth(present, old);
});

const put = (blobs: BlobStore, key: string, body: string) =>
  blobs.put(key, Readable.from([Buffer.from(body)]), { maxBytes: 1000 });
const read = async (blobs: BlobStore, key: string) => {
  const blob = await blobs.get(key);
  return blob && (await text(blob.stream));
};
async function keysOf(blobs: BlobStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of blobs.list()) keys.push(key);
  return keys.sort();
}

test('a service reads, replaces, lists and deletes the blobs of both stores while blobs move', async () => {
  await put(old, 'a', 'old a');
  await put(old, 'b', 'old b');
  await put(both, 'b', 'new b');
  await put(both, 'c', 'new c');
  expect(await read(both, 'a')).toBe('old a');
  expect(await read(both, 'b')).toBe('new b');
  expect(await both.stat('c')).toEqual({ sizeBytes: 5 });
  expect(await keysOf(both)).toEqual(['a', 'b', 'c']);
  await both.delete('b');
  expect(await both.stat('b')).toBeUndefined();
  expect(await keysOf(old)).toEqual(['a']);
});

test('copies missing and replaced blobs, and copies nothing the second time', async () => {
  await put(old, 'a', 'old a');
  await put(old, 'b', 'old b');
  await put(both, 'b', 'new b');
  expect(await copyBlobs(old, present)).toEqual({ copied: 1, present: 1, bytes: 5 });
  expect(await read(present, 'a')).toBe('old a');
  expect(await read(present, 'b')).toBe('new b');
  expect(await copyBlobs(old, present)).toEqual({ copied: 0, present: 2, bytes: 0 });
});

test.each([
  ['before it is written', 'get'],
  ['after it is written', 'putIfAbsent'],
] as const)('does not bring back a blob that a service deletes %s', async (_, step) => {
  await put(old, 'a', 'old a');
  const deletesAfter = async <T>(done: Promise<T>): Promise<T> => {
    const result = await done;
    await both.delete('a');
    return result;
  };
  const from: BlobStore = step === 'get' ? { ...old, get: (key) => deletesAfter(old.get(key)) } : old;
  const to: BlobStore =
    step === 'get' ? present : { ...present, putIfAbsent: (key, body) => deletesAfter(present.putIfAbsent(key, body)) };
  await copyBlobs(from, to);
  expect(await keysOf(both)).toEqual([]);
});

test('moves the marker of the installation, so that only the new store is accepted afterwards', async () => {
  const at = (name: string) => ({ kind: 'folder', path: path.join(folder, name) }) as const;
  const place = { dataFolder: folder, blobs: { RUNYARD_BLOBS: at('present'), RUNYARD_BLOBS_FROM: at('old') } };
  await createBlobMarker(old, 'one');
  expect(await createBlobMarker(both, 'one')).toBe('one');
  await moveBlobs(place, () => {});
  expect([await readBlobMarker(old), await readBlobMarker(present), await readBlobMarker(both)]).toEqual([
    undefined,
    'one',
    'one',
  ]);
  await createBlobMarker(old, 'two');
  await expect(moveBlobs(place, () => {})).rejects.toThrow('belongs to another database (one)');
});
