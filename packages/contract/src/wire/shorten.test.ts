import { expect, test } from 'vitest';
import { firstPart, lastPart, partsOf, shorten } from './shorten.ts';

const smile = '\u{1F600}';

test.each([
  ['abc', 3, 'abc'],
  ['abcd', 3, 'ab…'],
  [`ab${smile}c`, 4, 'ab…'],
  [`ab${smile}c`, 5, `ab${smile}c`],
  [`ab${smile}cd`, 5, `ab${smile}…`],
  ['a\ud83d', 2, 'a\ufffd'],
  ['a\ude00bcd', 4, 'a\ufffdb…'],
])('shortens %j to %i units', (text, max, expected) => {
  expect(shorten(text, max)).toBe(expected);
});

test('firstPart and lastPart never split a character', () => {
  expect(firstPart(`ab${smile}c`, 3)).toBe('ab');
  expect(firstPart(`ab${smile}c`, 4)).toBe(`ab${smile}`);
  expect(lastPart(`a${smile}bc`, 3)).toBe('bc');
  expect(lastPart(`a${smile}bc`, 4)).toBe(`${smile}bc`);
  expect(lastPart('abc', 0)).toBe('');
});

test.each([2, 3, 4, 5, 64])('partsOf splits a text into parts of %i units without loss', (size) => {
  const text = `a${smile}${smile}b${smile}c`.repeat(20);
  const parts = [...partsOf(text, size)];
  expect(parts.join('')).toBe(text);
  expect(parts.every((part) => part.isWellFormed() && part.length > 0 && part.length <= size)).toBe(true);
});
