import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openPool } from './pool.ts';

interface Item {
  readonly number: number;
  isDisposed: boolean;
  readonly gone: Promise<void>;
  isAlive(): boolean;
  dispose(): Promise<void>;
  /** Ends the item, as if another program had killed it. */
  end(): void;
}

let made: Item[];
/** If this is set, making an item fails with this error. */
let fault: Error | undefined;
const failures: string[] = [];

async function make(): Promise<Item> {
  await turn();
  if (fault !== undefined) throw fault;
  const gone = Promise.withResolvers<void>();
  let isAlive = true;
  const item: Item = {
    number: made.length,
    isDisposed: false,
    gone: gone.promise,
    isAlive: () => isAlive,
    async dispose() {
      item.isDisposed = true;
    },
    end() {
      isAlive = false;
      gone.resolve();
    },
  };
  made.push(item);
  return item;
}

const open = (size: number) => openPool(make, { size, refillMs: 100, onFailure: (reason) => failures.push(reason) });
const settle = async () => {
  for (let n = 0; n < 5; n++) await turn();
};

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  made = [];
  fault = undefined;
  failures.length = 0;
});
afterEach(() => vi.useRealTimers());

/** Opens a pool and waits until it is full. */
async function full(size: number) {
  const pool = open(size);
  for (let n = 0; n < size; n++) {
    await settle();
    await vi.advanceTimersByTimeAsync(0);
  }
  await settle();
  expect(made).toHaveLength(size);
  return pool;
}

test('the pool gives each item to only one caller, and makes new items after a pause', async () => {
  const pool = await full(2);
  const taken = [pool.takeReady(), pool.takeReady(), pool.takeReady()];
  expect(taken.map((item) => item?.number)).toEqual([0, 1, undefined]);
  await vi.advanceTimersByTimeAsync(99);
  await settle();
  expect(made).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  await settle();
  expect(pool.takeReady()?.number).toBe(2);
});

test('the pool makes new items after a pause even if further items are taken during the pause', async () => {
  const pool = await full(1);
  const taken: (number | undefined)[] = [];
  for (let n = 0; n < 8; n++) {
    taken.push(pool.takeReady()?.number);
    await vi.advanceTimersByTimeAsync(60);
    await settle();
  }
  expect(taken.filter((number) => number !== undefined)).toEqual([0, 1, 2, 3]);
});

test('the pool counts ready, taken and failed items', async () => {
  const pool = await full(2);
  expect(pool.counts()).toEqual({ wanted: 2, ready: 2, taken: 0, failed: 0 });
  pool.takeReady();
  made[1]?.end();
  await settle();
  expect(pool.counts()).toEqual({ wanted: 2, ready: 0, taken: 1, failed: 1, failure: 'it ended while it waited' });
});

test('a pool of size 0 makes no item ahead of time', async () => {
  const pool = open(0);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(made).toHaveLength(0);
  expect(pool.takeReady()).toBeUndefined();
  expect((await pool.take()).number).toBe(0);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(made).toHaveLength(1);
});

test('the pool gives an item that is being made to only one caller', async () => {
  const pool = open(1);
  const [first, second] = await Promise.all([pool.take(), pool.take()]);
  expect(new Set([first.number, second.number]).size).toBe(2);
});

test('the pool replaces an item that ended before a caller took it; the pause before each replacement grows', async () => {
  const pool = await full(1);
  for (const pauseMs of [1000, 2000]) {
    made.at(-1)?.end();
    await settle();
    expect(made.at(-1)?.isDisposed).toBe(true);
    expect(pool.takeReady()).toBeUndefined();
    const before = made.length;
    await vi.advanceTimersByTimeAsync(pauseMs * 0.7);
    await settle();
    expect(made).toHaveLength(before);
    await vi.advanceTimersByTimeAsync(pauseMs * 0.6);
    await settle();
    expect(made).toHaveLength(before + 1);
  }
  expect(failures).toHaveLength(2);
  expect(pool.takeReady()?.number).toBe(2);
});

test('the pool pauses longer after each failed attempt to make an item, but tries at once for a caller of take()', async () => {
  fault = new Error('no disk');
  const pool = open(1);
  await settle();
  for (let n = 0; n < 20; n++) {
    await vi.advanceTimersByTimeAsync(10_000);
    await settle();
  }
  expect(failures.length).toBeGreaterThan(3);
  expect(failures.length).toBeLessThan(12);
  await expect(pool.take()).rejects.toThrow('no disk');
  fault = undefined;
  expect((await pool.take()).number).toBe(0);
});

test('a closed pool disposes of items that are ready or being made', async () => {
  const pool = await full(1);
  const other = open(1);
  await Promise.all([pool.close(), other.close()]);
  await settle();
  expect(made.map(({ isDisposed }) => isDisposed)).toEqual([true, true]);
  expect(pool.takeReady()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(made).toHaveLength(2);
});

test.each(['waits', 'has ended'])(
  'close() resolves for all callers only after the removal of an item that %s',
  async (state) => {
    const pool = await full(1);
    const removal = Promise.withResolvers<void>();
    const [item] = made as [Item];
    item.dispose = () => removal.promise;
    if (state === 'has ended') {
      item.end();
      await settle();
    }
    const closed: number[] = [];
    const closing = [1, 2].map((caller) => pool.close().then(() => closed.push(caller)));
    await settle();
    expect(closed).toEqual([]);
    removal.resolve();
    await Promise.all(closing);
  },
);
