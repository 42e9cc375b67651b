import { describe, expect, test } from 'vitest';
import { backoffMs, delay, retryAfterMs } from './backoff.ts';

const middle = () => 0.5;

describe('backoffMs', () => {
  test('doubles the wait after each failure, up to the longest wait', () => {
    const waits = [1, 2, 3, 6, 7, 5_000].map((failures) =>
      backoffMs({ firstMs: 100, longestMs: 5_000 }, failures, middle),
    );
    expect(waits).toEqual([100, 200, 400, 3_200, 5_000, 5_000]);
  });

  test('multiplies the wait by `factor` instead of 2', () => {
    const waits = [1, 2, 3].map((failures) => backoffMs({ firstMs: 5, longestMs: 1_000, factor: 4 }, failures, middle));
    expect(waits).toEqual([5, 20, 80]);
  });

  test('changes the wait by up to 25 % in both directions, also the longest wait', () => {
    expect(backoffMs({ firstMs: 5_000, longestMs: 5_000 }, 9, () => 0)).toBe(3_750);
    expect(backoffMs({ firstMs: 5_000, longestMs: 5_000 }, 9, () => 0.999_999)).toBeCloseTo(6_250, 0);
  });
});

test.each([
  [undefined, undefined],
  ['120', 120_000],
  ['1.5', 1_500],
  ['0', 0],
  ['Sat, 21 Nov 2026 12:01:00 GMT', 60_000],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ['soon', undefined],
  ['1e9', undefined],
])('Retry-After: %s asks for %s ms', (header, expected) => {
  expect(retryAfterMs(header, Date.parse('2026-11-21T12:00:00Z'))).toBe(expected);
});

describe('delay', () => {
  test('rejects with the reason of a signal that is aborted before the call or during the wait', async () => {
    const reason = new Error('stopped');
    await expect(delay(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
    const stopping = new AbortController();
    const waited = delay(60_000, stopping.signal);
    stopping.abort(reason);
    await expect(waited).rejects.toBe(reason);
  });

  test('resolves after the time', async () => {
    await expect(delay(1)).resolves.toBeUndefined();
  });
});
