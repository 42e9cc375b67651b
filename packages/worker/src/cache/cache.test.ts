import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openBudget } from './budget.ts';
import { type Cache, openCache } from './cache.ts';

let folder: string;
beforeEach(async () => {
  folder = path.join(await mkdtemp(path.join(os.tmpdir(), 'runyard-cache-')), 'cache');
});
afterEach(async () => await rm(path.dirname(folder), { recursive: true, force: true }));

const open = (maxBytes = 100_000, now?: () => number) =>
  openCache({ folder, budget: openBudget(maxBytes), ...(now ? { now } : {}) });
async function* bytes(...parts: (string | Buffer)[]) {
  for (const part of parts) yield Buffer.from(part);
}
const many = (count: number) => bytes(Buffer.alloc(count, 'x'));

async function contentOf(cache: Cache, name: string): Promise<string | undefined> {
  const found = await cache.read(name);
  if (found === undefined) return undefined;
  let text = '';
  for await (const chunk of found.content()) text += chunk;
  return text;
}
// A file that was removed after the listing counts as zero bytes.
const sizeOf = async () => {
  const files = await readdir(folder);
  return (await Promise.all(files.map((file) => stat(path.join(folder, file)).catch(() => ({ size: 0 }))))).reduce(
    (sum, { size }) => sum + size,
    0,
  );
};

describe('the cache of a worker', () => {
  test('returns the content that was last stored under a name, even after a restart', async () => {
    const cache = await open();
    expect(await contentOf(cache, 'a')).toBeUndefined();
    expect(await cache.write('a', bytes('one ', 'object'))).toBe('kept');
    expect(await cache.write('b', bytes('other'))).toBe('kept');
    expect(await cache.write('a', bytes('newer'))).toBe('kept');
    for (const each of [cache, await open()]) {
      expect([await contentOf(each, 'a'), await contentOf(each, 'b')]).toEqual(['newer', 'other']);
      const found = await each.read('a');
      expect(found?.sha256).toMatch(/^[0-9a-f]{64}$/);
      await found?.close();
    }
    // The disk must not contain the name, because the name gives access to the object.
    expect(await readdir(folder)).not.toContain('a');
  });

  test('keeps the earlier object of a name if the source of a newer object fails', async () => {
    const cache = await open();
    await cache.write('a', bytes('whole'));
    async function* broken() {
      yield Buffer.from('half');
      throw new Error('gone');
    }
    await expect(cache.write('a', broken())).rejects.toThrow('gone');
    expect(await contentOf(cache, 'a')).toBe('whole');
    expect(await readdir(folder)).toHaveLength(1);
  });

  test('removes unfinished objects of a killed worker, and files that are not objects', async () => {
    const cache = await open();
    await cache.write('a', bytes('whole'));
    await writeFile(path.join(folder, 'new-0123456789abcdef'), 'half');
    await writeFile(path.join(folder, 'f'.repeat(64)), 'short');
    expect(await contentOf(await open(), 'a')).toBe('whole');
    expect(await readdir(folder)).toHaveLength(1);
  });

  test('forgets an object if the size of its file has changed', async () => {
    const cache = await open();
    await cache.write('a', bytes('whole'));
    const [file = ''] = await readdir(folder);
    await writeFile(path.join(folder, file), 'x'.repeat(50));
    expect(await contentOf(cache, 'a')).toBeUndefined();
    expect(await readdir(folder)).toEqual([]);
  });

  test('removes the least recently used objects first, also if they were used before a restart', async () => {
    let time = Date.now();
    const now = () => time++;
    const cache = await open(4_400, now);
    for (const name of ['a', 'b', 'c', 'd']) expect(await cache.write(name, many(1_000))).toBe('kept');
    time += 1_000;
    await contentOf(cache, 'a');
    expect(await cache.write('e', many(1_000))).toBe('kept');
    expect(await contentOf(cache, 'b')).toBeUndefined();
    time += 1_000;
    await contentOf(cache, 'c');
    const smaller = await open(2_200, now);
    const left = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => contentOf(smaller, name)));
    expect(left.map((text) => text !== undefined)).toEqual([false, false, true, false, true]);
  });

  test('never uses more space than its limit, not even while objects are written', async () => {
    const cache = await open(8_000);
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await cache.write(name, many(1_000));
    async function* slow() {
      for (let part = 0; part < 18; part++) {
        yield Buffer.alloc(100);
        expect(await sizeOf()).toBeLessThanOrEqual(8_000);
      }
    }
    expect(await Promise.all(['x', 'y', 'z'].map((name) => cache.write(name, slow())))).toEqual([
      'kept',
      'kept',
      'kept',
    ]);
    expect(await sizeOf()).toBeLessThanOrEqual(8_000);
  });

  test('refuses an object that needs more than a quarter of the cache, and keeps the other objects', async () => {
    const cache = await open(8_000);
    await cache.write('a', bytes('small'));
    expect(await cache.write('b', many(2_001))).toBe('too_large');
    expect(await contentOf(cache, 'a')).toBe('small');
    expect(await readdir(folder)).toHaveLength(1);
  });

  test('removes an object seven days after it was written', async () => {
    const cache = await open();
    await cache.write('a', bytes('old'));
    const [file = ''] = await readdir(folder);
    const eightDaysAgo = new Date(Date.now() - 8 * 86_400_000);
    await utimes(path.join(folder, file), new Date(), eightDaysAgo);
    expect(await contentOf(cache, 'a')).toBeUndefined();
  });
});
