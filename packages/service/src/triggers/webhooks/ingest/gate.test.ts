import { expect, test } from 'vitest';
import { makeGate } from './gate.ts';

test('runs the allowed number of calls, the others in order, and refuses calls above the limit of waiting ones', async () => {
  const gate = makeGate({ concurrent: 2, waiting: 2 });
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) =>
    gate(async () => {
      started.push(number);
      await new Promise<void>((resolve) => ends.push(resolve));
      return number;
    });
  const all = [1, 2, 3, 4, 5].map(work);
  expect(await all[4]).toBe('busy');
  expect(started).toEqual([1, 2]);
  ends.shift()?.();
  expect(await all[0]).toBe(1);
  await expect.poll(() => started).toEqual([1, 2, 3]);
  while (started.length < 4 || ends.length > 0) {
    ends.shift()?.();
    await Promise.resolve();
  }
  expect(await Promise.all(all)).toEqual([1, 2, 3, 4, 'busy']);
});

test('continues after failed work', async () => {
  const gate = makeGate({ concurrent: 1, waiting: 1 });
  const failed = gate(async () => Promise.reject(new Error('broken')));
  const next = gate(async () => 'done');
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
