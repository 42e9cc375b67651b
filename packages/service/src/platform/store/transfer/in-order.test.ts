import { expect, test } from 'vitest';
import { loadInOrder } from './in-order.ts';

async function* upTo(count: number) {
  for (let each = 0; each < count; each += 1) yield each;
}

test('items are loaded at the same time, at most the limit, and come in their order', async () => {
  let loading = 0;
  let most = 0;
  const load = async (item: number) => {
    most = Math.max(most, ++loading);
    // A later item is ready sooner.
    await new Promise((resolve) => setTimeout(resolve, 10 - item));
    loading -= 1;
    return item;
  };
  const results: number[] = [];
  for await (const result of loadInOrder(upTo(10), 4, load)) results.push(result);
  expect(results).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(most).toBe(4);
});

test('an error is thrown at its turn, and no call is in progress then', async () => {
  let loading = 0;
  const results: number[] = [];
  const load = async (item: number) => {
    loading += 1;
    await new Promise((resolve) => setTimeout(resolve, item === 2 ? 0 : 5));
    loading -= 1;
    if (item === 2) throw new Error('lost');
    return item;
  };
  const read = async () => {
    for await (const result of loadInOrder(upTo(10), 4, load)) results.push(result);
  };
  await expect(read()).rejects.toThrow('lost');
  expect(results).toEqual([0, 1]);
  expect(loading).toBe(0);
});
