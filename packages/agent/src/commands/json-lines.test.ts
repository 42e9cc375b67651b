import { describe, expect, test } from 'vitest';
import { lineSplitter } from './json-lines.ts';

const split = (chunks: string[], maxBytes = 100, keptBytes = 10) => {
  const lines = lineSplitter(maxBytes, keptBytes);
  return [...chunks.flatMap((chunk) => [...lines.push(Buffer.from(chunk))]), ...lines.end()];
};

describe('lineSplitter', () => {
  test('joins a line that comes in two chunks and splits a chunk with several lines', () => {
    expect(split(['a\nb', 'c\n', '\nd'])).toEqual([{ text: 'a' }, { text: 'bc' }, { text: '' }, { text: 'd' }]);
  });

  test('cuts a long line and continues after it', () => {
    for (const chunks of [[`${'x'.repeat(250)}\nnext\n`], [...Array.from({ length: 250 }, () => 'x'), '\nnext\n']]) {
      expect(split(chunks)).toEqual([{ text: 'xxxxxxxxxx', cutFrom: 250 }, { text: 'next' }]);
    }
  });

  test('keeps a line that is exactly as long as the limit', () => {
    expect(split([`${'x'.repeat(100)}\n`])).toEqual([{ text: 'x'.repeat(100) }]);
  });
});
