import { setImmediate as nextTurn } from 'node:timers/promises';

/** Time, in milliseconds, after which other work of the process gets a turn. */
const turnMs = 5;
/** Number of items between two reads of the clock. */
const itemsPerLook = 100;

/**
 * Calls `work` with each item in order. Pauses regularly, so that the process can do other work, because a repository may have hundreds of
 * thousands of names.
 */
export async function forEachInTurns<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  let began = performance.now();
  let count = 0;
  for (const item of items) {
    work(item);
    count += 1;
    if (count % itemsPerLook !== 0 || performance.now() - began < turnMs) continue;
    await nextTurn();
    began = performance.now();
  }
}
