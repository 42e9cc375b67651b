import { setImmediate as nextTurn } from 'node:timers/promises';
import { workForAll } from './shares.ts';

/** The wait ends after this many milliseconds, because a process that gets requests all the time must also write. */
const longestMs = 10;

/**
 * Waits until the requests that have already arrived are handled. The event loop handles requests one by one, so without this wait the
 * first of many requests would be written alone. A small transaction spends more time on its statements than on its rows. Resolves
 * when one turn of the event loop has not changed `count`, when `count` is at least `enough`, or after 10 ms. So without load, the
 * wait is only one turn.
 */
export async function untilArrived(count: () => number, enough: number): Promise<void> {
  const end = performance.now() + longestMs;
  for (let seen = -1; seen !== count() && count() < enough && performance.now() < end; ) {
    seen = count();
    await nextTurn();
  }
}

interface Waiting<Item> {
  readonly item: Item;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Returns a function that writes items in batches. A batch has at most `limit` items. Items that arrive while a batch is written wait
 * for the next batch. If a batch fails, its items are written again one by one, so that only the bad item fails.
 */
export function batched<Owner extends object, Item>(
  limit: number,
  write: (owner: Owner, items: readonly Item[]) => Promise<void>,
): (owner: Owner, item: Item) => Promise<void> {
  const queues = new WeakMap<Owner, { waiting: Waiting<Item>[]; isWriting: boolean }>();

  async function drain(owner: Owner, queue: { waiting: Waiting<Item>[]; isWriting: boolean }): Promise<void> {
    queue.isWriting = true;
    while (queue.waiting.length > 0) {
      await untilArrived(() => queue.waiting.length, limit);
      const batch = queue.waiting.splice(0, limit);
      try {
        await write(
          owner,
          batch.map((entry) => entry.item),
        );
        for (const entry of batch) entry.resolve();
      } catch (error) {
        if (batch.length === 1) batch[0]?.reject(error);
        else for (const entry of batch) await write(owner, [entry.item]).then(entry.resolve, entry.reject);
      }
    }
    queue.isWriting = false;
  }

  return (owner, item) =>
    new Promise((resolve, reject) => {
      const queue = queues.get(owner) ?? { waiting: [], isWriting: false };
      queues.set(owner, queue);
      queue.waiting.push({ item, resolve, reject });
      if (!queue.isWriting) void workForAll(() => drain(owner, queue));
    });
}
