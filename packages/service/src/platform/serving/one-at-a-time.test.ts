import { expect, test } from 'vitest';
import { oneAtATime } from './one-at-a-time.ts';

test('runs the work again after a run that awaited nothing', async () => {
  let runs = 0;
  const counted = oneAtATime(async () => {
    runs += 1;
  });
  await counted.run();
  await counted.run();
  expect(runs).toBe(2);
});

test('runs once more for all calls that come while it runs', async () => {
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

test('runs again after a failure', async () => {
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

test('runs for a call that came while a run was failing', async () => {
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

test('runs the work again after a run that threw before it returned a promise', async () => {
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
