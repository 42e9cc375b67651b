import { expect, test } from 'vitest';
import { forEachInTurns } from './in-turns.ts';

const busyFor = (ms: number) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

test('`forEachInTurns` calls the function with each item in order, and the process does other work in between', async () => {
  const items = Array.from({ length: 1000 }, (_, index) => index);
  const seen: number[] = [];
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await new Promise(setImmediate);
      turns += 1;
    }
  })();
  await forEachInTurns(items, (item) => {
    seen.push(item);
    busyFor(0.1);
  });
  isOver = true;
  await others;
  expect(seen).toEqual(items);
  expect(turns).toBeGreaterThan(5);
});

test('an error of the function ends the loop of `forEachInTurns` and reaches its caller', async () => {
  const seen: number[] = [];
  const failing = forEachInTurns([1, 2, 3], (item) => {
    seen.push(item);
    if (item === 2) throw new Error('enough');
  });
  await expect(failing).rejects.toThrow('enough');
  expect(seen).toEqual([1, 2]);
});
