import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';

/** If a thread gets less than this share of a processor, the caller stops waiting for it. */
const leastShare = 1 / 20;
/** Shortest pause between two measurements, milliseconds. */
const shortestPauseMs = 20;

/**
 * Waits for the first of these events: the thread has used `limitMs` milliseconds of processor time from now on (`too_slow`); twenty
 * times `limitMs` have passed (`busy`); `stopped` is aborted or the thread has ended (`stopped`).
 */
export async function untilUsedUp(
  thread: Pick<Worker, 'cpuUsage'>,
  limitMs: number,
  stopped: AbortSignal,
): Promise<'too_slow' | 'busy' | 'stopped'> {
  const giveUpAt = performance.now() + limitMs / leastShare;
  try {
    const before = await thread.cpuUsage();
    let pauseMs = limitMs;
    while (performance.now() < giveUpAt) {
      await sleep(pauseMs, undefined, { signal: stopped });
      // Microseconds.
      const { user, system } = await thread.cpuUsage(before);
      const leftMs = limitMs - (user + system) / 1000;
      if (leftMs <= 0) return 'too_slow';
      pauseMs = Math.max(leftMs, shortestPauseMs);
    }
    return 'busy';
  } catch {
    return 'stopped';
  }
}
