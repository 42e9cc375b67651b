import { expect, test } from 'vitest';
import { type CheckpointMoment, isDue } from './checkpoints.ts';

const moment = { sinceMs: 0, intervalMs: 1000, tookMs: 0, failures: 0, isQuiet: true };

test.each<[title: string, given: Partial<CheckpointMoment>, firstAt: number]>([
  ['after the interval, between two actions', {}, 1000],
  ['after two intervals, if an action is in progress', { isQuiet: false }, 2000],
  ['after ten times as long as the last one took', { tookMs: 500 }, 5000],
  ['later after each failure', { failures: 2 }, 4000],
  ['at the latest after 64 intervals, however often it failed', { failures: 50 }, 64_000],
])('is due %s', (_, given, firstAt) => {
  expect(isDue({ ...moment, ...given, sinceMs: firstAt - 1 })).toBe(false);
  expect(isDue({ ...moment, ...given, sinceMs: firstAt })).toBe(true);
});
