import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { StoreUnavailable } from '../database/unavailable.ts';
import { leastFreeForStreams, watchFreeSpace } from '../free-space/free-space.ts';
import type { BlobStore } from './blobs.ts';
import { openFolderBlobs } from './folder-blobs.ts';
import { guardBlobs } from './guarded-blobs.ts';

let folder: string;
let free: number;
let blobs: BlobStore;
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const space = () => watchFreeSpace({ folder, log, measureFree: async () => free });
beforeEach(async () => {
  folder = newFolder();
  free = leastFreeForStreams + 3 * 1024 * 1024;
  blobs = guardBlobs(await openFolderBlobs(folder), { freeSpace: space() });
});

/** Sends pieces of 1 MiB, and reduces the free space by each piece. */
async function* megabytes(count: number) {
  for (let sent = 0; sent < count; sent += 1) {
    yield Buffer.alloc(1024 * 1024);
    free -= 1024 * 1024;
  }
}

test('a stream fails in the middle when the disk has no room for large files, and stores no part of the blob', async () => {
  const put = blobs.put('artifacts/a', megabytes(100), { maxBytes: 1e9 });
  await expect(put).rejects.toThrow(StoreUnavailable);
  await expect(put).rejects.toThrow('no room for large files (127 MB free)');
  expect(free).toBeGreaterThan(leastFreeForStreams - 2 * 1024 * 1024);
  expect(await readdir(path.join(folder, 'incoming'))).toEqual([]);
  expect(await blobs.stat('artifacts/a')).toBeUndefined();
});

test('a disk with little space still stores transcripts, but files of clients only when there is more space', async () => {
  free = leastFreeForStreams - 1;
  const one = () => Readable.from([Buffer.from('x')]);
  await expect(blobs.put('attachments/a', one(), { maxBytes: 10 })).rejects.toThrow(StoreUnavailable);
  expect(await blobs.put('transcripts/a', one(), { maxBytes: 10 })).toMatchObject({ outcome: 'stored' });
  free = leastFreeForStreams;
  expect(await blobs.put('attachments/a', one(), { maxBytes: 10 })).toMatchObject({ outcome: 'stored' });
});

test('other requests are refused only when much less space is left, which the database needs', async () => {
  const watched = space();
  free = leastFreeForStreams - 1;
  await watched.measure();
  expect([watched.problem(), await watched.streamProblem()]).toEqual([null, expect.stringContaining('no room')]);
  free = 15 * 1024 * 1024;
  await watched.measure();
  expect(watched.problem()).toContain('is full');
});
