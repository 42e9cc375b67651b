import { expect, test } from 'vitest';
import { isNearlyFull } from './pull.ts';

const gigabyte = 2 ** 30;
test.each([
  ['other programs wrote more than the limit, and there is room', 60, 30, 100, 10, false],
  ['more than the limit was taken, and less than a tenth is left', 60, 7, 100, 10, true],
  ['less than a tenth is left, of a small image', 9, 8.5, 100, 10, false],
  ['less than 512 MB are left', 0.6, 0.4, 100, 10, true],
  ['a tenth of a large disk is more than a pull must leave', 100, 80, 1000, 10, false],
])('isNearlyFull decides whether a pull must stop: %s', (_, before, now, total, limit, full) => {
  const space = (free: number) => ({ free: free * gigabyte, total: total * gigabyte });
  expect(isNearlyFull(space(before), space(now), limit * gigabyte)).toBe(full);
});
