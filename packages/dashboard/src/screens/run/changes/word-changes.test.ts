import { expect, test } from 'vitest';
import { readPatch } from '../../../parts/diff.tsx';
import { partsOf } from './line-contents.tsx';
import { changedWords } from './word-changes.ts';

const markedIn = (patch: string): string[] => {
  const lines = readPatch(patch);
  return [...changedWords(lines)].flatMap(([index, ranges]) =>
    ranges.map(([from, to]) => `${lines[index]?.kind} ${lines[index]?.text.slice(from, to)}`),
  );
};

test('marks the words that differ between a deleted line and the line that replaces it', () => {
  const patch = '@@ -1,2 +1,2 @@\n a\n-  return sum(rows, 2);\n+  return total(rows, 3);';
  expect(markedIn(patch)).toEqual(['del sum', 'del 2', 'add total', 'add 3']);
});

test('pairs the lines of blocks of the same length, and marks nothing in blocks of different length', () => {
  expect(markedIn('@@ -1,2 +1,2 @@\n-let a = 1\n-let b = 1\n+let a = 2\n+let b = 3')).toEqual([
    'del 1',
    'add 2',
    'del 1',
    'add 3',
  ]);
  expect(markedIn('@@ -1 +1,2 @@\n-let a = 1\n+let a = 2\n+let b = 3')).toEqual([]);
});

test('marks nothing in lines that have little in common, and in lines of other hunks', () => {
  expect(markedIn('@@ -1 +1 @@\n-completely different\n+const x = parse(y)')).toEqual([]);
  expect(markedIn('@@ -1 +0,0 @@\n-let a = 1\n@@ -9,0 +8 @@\n+let a = 2')).toEqual([]);
});

test('compares long and hostile lines in little time', () => {
  const began = performance.now();
  for (const [before, after] of [
    ['a '.repeat(60_000), 'b '.repeat(60_000)],
    ['ab'.repeat(900), 'ba'.repeat(900)],
    ['a b c '.repeat(300), 'c b a '.repeat(300)],
  ])
    markedIn(`@@ -1 +1 @@\n-${before}\n+${after}`);
  expect(performance.now() - began).toBeLessThan(2_000);
});

test('cuts the words of a line at the ends of its marked parts', () => {
  const parts = [
    ...partsOf(
      [['const', 'keyword'], [' total = '], ['12', 'number']],
      [
        [6, 11],
        [14, 15],
      ],
    ),
  ];
  expect(parts.map(({ text, kind, isMarked }) => [text, kind, isMarked])).toEqual([
    ['const', 'keyword', false],
    [' ', undefined, false],
    ['total', undefined, true],
    [' = ', undefined, false],
    ['1', 'number', true],
    ['2', 'number', false],
  ]);
});
