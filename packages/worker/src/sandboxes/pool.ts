import { backoffMs } from '@runyard/system/backoff';

/** The kind of item that a pool keeps ready. */
interface Pooled {
  readonly isAlive: () => boolean;
  /** Resolves when the item has ended before it was taken. */
  readonly gone: Promise<unknown>;
  dispose(): Promise<void>;
}

/** The state of a pool, for a person. */
export interface PoolCounts {
  /** Number of items that the pool tries to keep ready. */
  readonly wanted: number;
  readonly ready: number;
  /** Number of ready items that were taken since the pool was opened. */
  readonly taken: number;
  /** Number of items that could not be made, or that ended unused, since the pool was opened. */
  readonly failed: number;
  /** Reason of the last failure; absent: no item failed. */
  readonly failure?: string;
}

/** Keeps sandboxes ready, so that an assignment does not wait for their preparation. Each is taken at most once. */
export interface Pool<T extends Pooled> {
  /** Returns a ready sandbox. If no sandbox is ready, returns the one that is being made, or makes a new one. The pool is refilled a moment later. */
  take(): Promise<T>;
  /** Returns a ready sandbox, or undefined. The pool is refilled a moment later. */
  takeReady(): T | undefined;
  counts(): PoolCounts;
  /** Removes the ready sandboxes and makes no further ones ahead of time. `take` still makes a sandbox for its caller. */
  close(): Promise<void>;
}

export interface PoolOptions {
  /** Sandboxes to keep ready; 0: none. */
  readonly size: number;
  /** Pause from the first take until the pool is refilled, in milliseconds. The pause leaves the processor to the agent of the taken sandbox. */
  readonly refillMs: number;
  /** Called when a sandbox could not be made, or ended unused. */
  readonly onFailure?: (reason: string) => void;
}

/** Pauses between attempts after repeated failures. The pauses are short again when a sandbox of the pool is taken. */
const pauses = { firstMs: 1000, longestMs: 60_000 };

interface Making<T> {
  readonly item: Promise<T>;
  isTaken: boolean;
}

/** Opens a pool and starts to fill it. Makes one sandbox at a time. */
export function openPool<T extends Pooled>(make: () => Promise<T>, options: PoolOptions): Pool<T> {
  const { size, refillMs, onFailure = () => {} } = options;
  const ready = new Set<T>();
  let making: Making<T> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;
  let taken = 0;
  let failed = 0;
  let failure: string | undefined;
  let closed = false;
  let filling = Promise.resolve();
  /** Removals in progress. The process may end only after these removals. */
  const removals = new Set<Promise<void>>();

  const remove = (item: T): void => {
    const removal = item.dispose().finally(() => removals.delete(removal));
    removals.add(removal);
  };

  const fillIn = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      startToFill();
    }, ms).unref();
  };

  const fail = (reason: string): void => {
    failures += 1;
    failed += 1;
    failure = reason;
    onFailure(reason);
    fillIn(backoffMs(pauses, failures));
  };

  const keep = (item: T): void => {
    ready.add(item);
    void item.gone.then(() => {
      if (!ready.delete(item)) return;
      remove(item);
      fail('it ended while it waited');
    });
  };

  const fill = async (): Promise<void> => {
    if (closed || making !== undefined || ready.size >= size) return;
    const entry: Making<T> = { item: make(), isTaken: false };
    making = entry;
    const made = await entry.item.catch((error: Error) => error);
    if (making === entry) making = undefined;
    if (entry.isTaken) return;
    if (made instanceof Error) return fail(made.message);
    if (closed) return await made.dispose();
    keep(made);
    if (ready.size < size) fillIn(0);
  };

  const startToFill = (): void => {
    filling = Promise.all([filling, fill()]).then(() => {});
  };

  const takeReady = (): T | undefined => {
    // A pause in progress is not restarted. Otherwise many calls in a row would keep the pool empty.
    if (size > 0 && !closed && timer === undefined) fillIn(failures === 0 ? refillMs : backoffMs(pauses, failures));
    for (const item of ready) {
      ready.delete(item);
      if (item.isAlive()) {
        failures = 0;
        taken += 1;
        return item;
      }
      remove(item);
    }
    return undefined;
  };

  startToFill();
  return {
    takeReady,
    counts: () => ({ wanted: size, ready: ready.size, taken, failed, ...(failure === undefined ? {} : { failure }) }),
    async take() {
      const item = takeReady();
      if (item !== undefined) return item;
      const entry = making;
      making = undefined;
      if (entry !== undefined) {
        entry.isTaken = true;
        // A start that failed ahead of time may work now, for example after a full disk or a missing folder.
        const made = await entry.item.catch(() => undefined);
        if (made?.isAlive()) return made;
        if (made !== undefined) remove(made);
      }
      return await make();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      for (const item of ready) remove(item);
      ready.clear();
      // Closing also removes the item that is being made.
      await filling;
      await Promise.all(removals);
    },
  };
}
