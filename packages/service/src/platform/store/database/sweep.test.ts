import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type FailedRows, sweepPages } from './sweep.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Sweeps rows in pages of two. Rows in `bad` fail. Returns the rows that the round tried. */
async function sweep(rows: readonly string[], bad: readonly string[], failed: FailedRows): Promise<string[]> {
  const tried: string[] = [];
  await sweepPages({
    firstPage: async () => rows.slice(0, 2),
    pageAfter: async (id) => rows.filter((row) => row > id).slice(0, 2),
    pageSize: 2,
    idOf: (row) => row,
    work: async (row) => {
      tried.push(row);
      if (bad.includes(row)) throw new Error('bad');
    },
    onFailure: () => undefined,
    failed,
  });
  return tried;
}

test('a round reads all pages, and tries a failed row again only after a wait that doubles with each failure', async () => {
  const failed: FailedRows = new Map();
  const rows = ['a', 'b', 'c', 'd'];
  expect(await sweep(rows, ['a', 'b'], failed)).toEqual(rows);
  expect(await sweep(rows, ['a', 'b'], failed)).toEqual(['c', 'd']);
  vi.advanceTimersByTime(1_250);
  expect(await sweep(rows, ['b'], failed)).toEqual(rows);
  vi.advanceTimersByTime(1_250);
  expect(await sweep(rows, ['b'], failed)).toEqual(['a', 'c', 'd']);
  expect(await sweep(['a'], [], failed)).toEqual(['a']);
  expect(failed.size).toBe(0);
});
