/** Tests that every implementation of `BlobStore` must pass. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import type { BlobStore } from '../src/platform/store/blobs/blobs.ts';
import { createBlobMarker, readBlobMarker, replaceBlobMarker } from '../src/platform/store/blobs/marker.ts';

/** Declares the tests. `open`: returns an empty store for each test. */
export function describeBlobStore(name: string, open: () => Promise<BlobStore>): void {
  describe(name, () => {
    let blobs: BlobStore;
    beforeEach(async () => {
      blobs = await open();
    });

    const limits = { maxBytes: 1000 };
    const read = async (key: string, range?: { start: number; end: number }) => {
      const blob = await blobs.get(key, range);
      return blob && { sizeBytes: blob.sizeBytes, text: await text(blob.stream) };
    };

    test('returns a blob unchanged, with its size and SHA-256', async () => {
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

    test('returns undefined for a missing blob, and accepts a request to delete it', async () => {
      expect(await blobs.get('none')).toBeUndefined();
      expect(await blobs.stat('none')).toBeUndefined();
      await blobs.delete('none');
    });

    test('reads a range that includes its first and last byte, and no bytes beyond the end', async () => {
      await blobs.put('r', Readable.from([Buffer.from('0123456789')]), limits);
      expect(await read('r', { start: 2, end: 4 })).toEqual({ sizeBytes: 10, text: '234' });
      expect(await read('r', { start: 8, end: 100 })).toEqual({ sizeBytes: 10, text: '89' });
      expect(await read('r', { start: 10, end: 20 })).toEqual({ sizeBytes: 10, text: '' });
    });

    test('stops reading a body at the size limit and keeps the earlier blob', async () => {
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
    });

    test('stores a body whose size is exactly the limit', async () => {
      expect(await blobs.put('k', Readable.from([Buffer.alloc(1000)]), limits)).toMatchObject({
        outcome: 'stored',
        sizeBytes: 1000,
      });
    });

    test('throws if reading the body fails, and keeps the earlier blob', async () => {
      await blobs.put('k', Readable.from([Buffer.from('before')]), limits);
      const broken = (async function* () {
        yield Buffer.from('half');
        throw new Error('connection lost');
      })();
      await expect(blobs.put('k', broken, limits)).rejects.toThrow('connection lost');
      expect(await read('k')).toEqual({ sizeBytes: 6, text: 'before' });
    });

    test('stores exactly one of several concurrent bodies for a key, and stores it completely', async () => {
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

    test('stores a body only if the key has no blob', async () => {
      const put = (letter: string) => blobs.putIfAbsent('k', Readable.from([Buffer.from(letter)]));
      expect(await put('a')).toBe(true);
      expect(await put('b')).toBe(false);
      expect((await read('k'))?.text).toBe('a');
      const broken = (async function* () {
        yield Buffer.from('half');
        throw new Error('connection lost');
      })();
      await expect(blobs.putIfAbsent('other', broken)).rejects.toThrow('connection lost');
      expect(await blobs.stat('other')).toBeUndefined();
    });

    test('keeps the marker of its first installation until the marker is replaced', async () => {
      expect(await readBlobMarker(blobs)).toBeUndefined();
      expect([await createBlobMarker(blobs, 'one'), await createBlobMarker(blobs, 'two')]).toEqual(['one', 'one']);
      await replaceBlobMarker(blobs, 'two');
      expect(await readBlobMarker(blobs)).toBe('two');
    });
  });
}
