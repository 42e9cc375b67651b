import { expect, it } from 'vitest';
import { untilUsedUp } from './processor-limit.ts';

/** A fake thread. Between measurement `n` and the next measurement, the thread gets the share `shareOf(n)` of a processor. */
function fakeThread(shareOf: (look: number) => number) {
  let usedMs = 0;
  let look = 0;
  let lookedAt = performance.now();
  return {
    cpuUsage: async (before?: NodeJS.CpuUsage) => {
      const now = performance.now();
      usedMs += (now - lookedAt) * shareOf(look);
      look += 1;
      lookedAt = now;
      return { user: usedMs * 1000 - (before?.user ?? 0), system: 0 };
    },
    usedMs: () => usedMs,
  };
}
const open = new AbortController().signal;

it('the limit counts only processor time, even if the thread has to wait long for a processor', async () => {
  const thread = fakeThread((look) => (look < 4 ? 0.2 : 1));
  const startedAt = performance.now();
  expect(await untilUsedUp(thread, 100, open)).toBe('too_slow');
  expect(thread.usedMs()).toBeGreaterThanOrEqual(100);
  expect(performance.now() - startedAt).toBeGreaterThan(150);
});

it('the wait for the limit ends if the thread gets hardly any processor time', async () => {
  const thread = fakeThread(() => 0.01);
  expect(await untilUsedUp(thread, 40, open)).toBe('busy');
  expect(thread.usedMs()).toBeLessThan(40);
});

it('the wait for the limit ends when the caller aborts it or the thread has ended', async () => {
  const stopping = new AbortController();
  const waiting = untilUsedUp(
    fakeThread(() => 1),
    60_000,
    stopping.signal,
  );
  stopping.abort();
  expect(await waiting).toBe('stopped');
  const ended = { cpuUsage: () => Promise.reject(new Error('the thread has ended')) };
  expect(await untilUsedUp(ended, 10, open)).toBe('stopped');
});
