import { expect, test } from 'vitest';
import { oneAtATime } from './one-at-a-time.ts';

test('a second call of `run` starts the work again, even if the work ends without waiting for anything', async () => {
  let runs = 0;
  const counted = oneAtATime(async () => {
    runs += 1;
  });
  await counted.run();
  await counted.run();
  expect(runs).toBe(2);
});

test('`run` starts the work only once more for all calls that come while the work runs', async () => {
  let runs = 0;
  const gate = Promise.withResolvers<void>();
  const counted = oneAtATime(async () => {
    runs += 1;
    await gate.promise;
  });
  const calls = [counted.run(), counted.run(), counted.run()];
  gate.resolve();
  await Promise.all(calls);
  expect(runs).toBe(2);
});

test('`run` starts the work again after the work has failed', async () => {
  let runs = 0;
  const failing = oneAtATime(async () => {
    runs += 1;
    if (runs === 1) throw new Error('the first run fails');
  });
  await expect(failing.run()).rejects.toThrow('the first run fails');
  await failing.run();
  expect(runs).toBe(2);
});

test('`stop` waits for the work in progress and starts no more work', async () => {
  let runs = 0;
  const gate = Promise.withResolvers<void>();
  const counted = oneAtATime(async () => {
    runs += 1;
    await gate.promise;
  });
  const first = counted.run();
  const second = counted.run();
  const stopped = counted.stop();
  gate.resolve();
  await Promise.all([first, second, stopped]);
  await counted.run();
  expect(runs).toBe(1);
});

test('if `run` is called while work is in progress that then fails, the work runs again and the failure is not reported', async () => {
  let runs = 0;
  const gate = Promise.withResolvers<void>();
  const failing = oneAtATime(async () => {
    runs += 1;
    if (runs > 1) return;
    await gate.promise;
    throw new Error('the first run fails');
  });
  const calls = [failing.run(), failing.run()];
  gate.resolve();
  await Promise.all(calls);
  expect(runs).toBe(2);
});

test('`run` starts the work again after the work threw an error before it returned a promise', async () => {
  let runs = 0;
  const failing = oneAtATime(() => {
    runs += 1;
    if (runs === 1) throw new Error('the first run fails');
    return Promise.resolve();
  });
  await expect(failing.run()).rejects.toThrow('the first run fails');
  await failing.run();
  expect(runs).toBe(2);
});
