import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { batched, untilArrived } from './batched.ts';

// Stop the clock, so that the wait does not end early if the process has to wait for the processor.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Returns a function that counts items. The count starts at 1, and each of the next `turns` turns of the event loop adds 1. */
function arrivals(turns: number) {
  let count = 1;
  const next = (left: number) => {
    if (left === 0) return;
    setImmediate(() => {
      count += 1;
      next(left - 1);
    });
  };
  next(turns);
  return () => count;
}

test('`untilArrived` waits for more items until a turn of the event loop adds none', async () => {
  const count = arrivals(3);
  await untilArrived(count, 100);
  expect(count()).toBe(4);
});

test('`untilArrived` ends the wait when there are enough items', async () => {
  const count = arrivals(50);
  await untilArrived(count, 5);
  expect(count()).toBe(5);
});

test('`untilArrived` ends the wait even if items arrive all the time', async () => {
  vi.useRealTimers();
  let isOver = false;
  let count = 0;
  const next = () => {
    count += 1;
    if (!isOver) setImmediate(next);
  };
  next();
  await untilArrived(() => count, Number.POSITIVE_INFINITY);
  isOver = true;
  expect(count).toBeGreaterThan(1);
});

test('items that arrive in one turn of the event loop are written together', async () => {
  const writes: (readonly number[])[] = [];
  const write = batched<object, number>(3, async (_, items) => void writes.push(items));
  const owner = {};
  const later = new Promise<void>((resolve, reject) => {
    setImmediate(
      () => void Promise.all([write(owner, 2), write(owner, 3), write(owner, 4)]).then(() => resolve(), reject),
    );
  });
  await write(owner, 1);
  await later;
  expect(writes).toEqual([[1, 2, 3], [4]]);
});
