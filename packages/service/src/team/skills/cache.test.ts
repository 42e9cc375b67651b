import { expect, test } from 'vitest';
import { makeCache } from './cache.ts';

test('the cache holds at most its maximum number of bytes, and drops the least recently used value first', () => {
  const cache = makeCache<string>(100);
  cache.set('a', 'A', 40);
  cache.set('b', 'B', 40);
  expect(cache.get('a')).toBe('A');
  cache.set('c', 'C', 40);
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual(['A', undefined, 'C']);
  // A new value replaces the old value, and the size of the old value does not count any more.
  cache.set('c', 'C2', 60);
  expect([cache.get('a'), cache.get('c')]).toEqual(['A', 'C2']);
  cache.set('d', 'D', 100);
  expect([cache.get('a'), cache.get('c'), cache.get('d')]).toEqual([undefined, undefined, 'D']);
});

test('the cache does not store a value that is larger than the cache, and deletes the older value with that name', () => {
  const cache = makeCache<string>(100);
  cache.set('a', 'A', 1);
  cache.set('b', 'B', 1);
  cache.set('a', 'A2', 101);
  expect([cache.get('a'), cache.get('b')]).toEqual([undefined, 'B']);
});
