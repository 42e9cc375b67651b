import { backoffMs } from '@runyard/system/backoff';

/** The functions that an item of a pool must have. */
interface Pooled {
  readonly isAlive: () => boolean;
  /** Resolves when the item has ended before it was taken. */
  readonly gone: Promise<unknown>;
  dispose(): Promise<void>;
}

/** The state of a pool, for messages that a person reads. */
export interface PoolCounts {
  /** Number of items that the pool tries to keep ready. */
  readonly wanted: number;
  readonly ready: number;
  /** Number of ready items that were taken since the pool was opened. */
  readonly taken: number;
  /** Number of items that could not be made or that ended before they were taken, since the pool was opened. */
  readonly failed: number;
  /** Reason of the last failure. Absent if no item has failed. */
  readonly failure?: string;
}

/** Keeps sandboxes ready, so that an assignment does not wait until a sandbox is prepared. Each sandbox is taken at most once. */
export interface Pool<T extends Pooled> {
  /**
   * Takes a ready sandbox. If no sandbox is ready, takes the sandbox that is being made, or makes a new one. The pool is refilled a
   * moment later.
   */
  take(): Promise<T>;
  /** Takes a ready sandbox, or returns undefined if there is none. The pool is refilled a moment later. */
  takeReady(): T | undefined;
  counts(): PoolCounts;
  /** Removes the ready sandboxes and makes no further ones ahead of time. `take` still makes a sandbox for its caller. */
  close(): Promise<void>;
}

export interface PoolOptions {
  /** Number of sandboxes to keep ready. */
  readonly size: number;
  /**
   * Milliseconds from the moment when a sandbox is taken until the pool makes a new one. In this pause, the agent of the taken sandbox
   * can use the processor alone.
   */
  readonly refillMs: number;
  /** Called when a sandbox could not be made or ended before it was taken. */
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
  /** Removals in progress. `close` waits for them, so that the process does not end before they are complete. */
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
    // Does not restart a pause in progress, because many calls in a row would then keep the pool empty.
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
        // If the pool has failed to make the sandbox, tries again for the caller, because the cause (for example a full disk) may be gone.
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
      // Waits for the sandbox that is being made, so that it is removed too.
      await filling;
      await Promise.all(removals);
    },
  };
}
