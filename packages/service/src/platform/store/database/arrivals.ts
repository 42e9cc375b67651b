import { setImmediate as nextTurn } from 'node:timers/promises';

/** Longest wait. A process that gets requests all the time must write at last. */
const longestMs = 10;

/**
 * Waits until the requests that have already arrived are handled. The event loop handles requests one by one, so that the first of many
 * would be written alone, and the statements of a small transaction cost more than its rows. Resolves when one turn of the event
 * loop has not changed `count`, when `count` is at least `enough`, or after 10 ms. Without load that is at once.
 */
export async function untilArrived(count: () => number, enough: number): Promise<void> {
  const end = performance.now() + longestMs;
  for (let seen = -1; seen !== count() && count() < enough && performance.now() < end; ) {
    seen = count();
    await nextTurn();
  }
}
