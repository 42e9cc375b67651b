import { expect, test } from 'vitest';
import { backoffMs, retryAfterMs } from './backoff.ts';

test('waits grow fourfold from 5 s to 4 h, so that 24 h hold a dozen attempts', () => {
  const middle = () => 0.5;
  const waits = Array.from({ length: 14 }, (_, index) => backoffMs(index + 1, middle) / 1000);
  expect(waits.slice(0, 8)).toEqual([5, 20, 80, 320, 1280, 5120, 14400, 14400]);
  let passed = 0;
  const within = waits.filter((wait) => {
    passed += wait;
    return passed < 86_400;
  });
  expect(within.length + 1).toBe(12);
});

test('jitter is 25 % to both sides', () => {
  expect(backoffMs(1, () => 0)).toBe(3_750);
  expect(backoffMs(1, () => 0.999_999)).toBeCloseTo(6_250, 0);
});

test('Retry-After only makes a wait longer', () => {
  expect(backoffMs(1, () => 0.5, 60_000)).toBe(60_000);
  expect(backoffMs(4, () => 0.5, 60_000)).toBe(320_000);
});

test.each([
  [undefined, 0],
  ['120', 120_000],
  ['0', 0],
  ['Sat, 21 Nov 2026 12:01:00 GMT', 60_000],
  ['Sat, 21 Nov 2026 11:00:00 GMT', 0],
  ['soon', 0],
  ['-5', 0],
  ['1e9', 0],
])('Retry-After: %s asks for %i ms', (header, expected) => {
  expect(retryAfterMs(header, Date.parse('2026-11-21T12:00:00Z'))).toBe(expected);
});
