import { expect, onTestFinished, test } from 'vitest';
import { watchHealth } from './health.ts';

const gigabyte = 1024 ** 3;

async function watch(freeBytes: () => number | undefined, totalBytes = 100 * gigabyte) {
  const state = { sandbox: undefined as Error | undefined, tried: 0, changes: [] as (string | undefined)[] };
  const health = await watchHealth({
    folder: '/state',
    trySandbox: async () => {
      state.tried += 1;
      if (state.sandbox !== undefined) throw state.sandbox;
    },
    onChange: () => state.changes.push(health.problem()),
    log: { warn: () => {}, info: () => {} },
    readDisk: async () => {
      const free = freeBytes();
      return free === undefined ? undefined : { free_bytes: free, total_bytes: totalBytes };
    },
  });
  onTestFinished(() => health.close());
  return { health, state };
}

test('a worker whose disk is nearly full has a problem until it has clearly more room', async () => {
  let free: number | undefined = 2 * gigabyte;
  const { health, state } = await watch(() => free);
  expect(health.problem()).toBeUndefined();
  free = 0.9 * gigabyte;
  await health.check();
  expect(health.problem()).toMatch(/\/state had 921 MB free, and new sandboxes need 1024 MB/);
  free = undefined;
  await health.check();
  free = 1.2 * gigabyte;
  await health.check();
  expect(health.problem()).toBeDefined();
  free = 1.6 * gigabyte;
  await health.check();
  expect(health.problem()).toBeUndefined();
  expect(state.changes).toEqual([expect.stringContaining('921 MB'), undefined]);
});

test('a small disk needs only a part of itself, and a worker that starts on a full disk has the problem from the start', async () => {
  expect((await watch(() => 0.1 * gigabyte, gigabyte)).health.problem()).toBeUndefined();
  expect((await watch(() => 0.04 * gigabyte, gigabyte)).health.problem()).toMatch(
    /41|40 MB free, and new sandboxes need 51/,
  );
});

test('a failed sandbox of a run is a problem of the worker only if a test sandbox fails too, and only until one works', async () => {
  const { health, state } = await watch(() => 50 * gigabyte);
  health.doubt();
  health.doubt();
  await expect.poll(() => state.tried).toBe(1);
  expect(health.problem()).toBeUndefined();

  const { health: sick, state: its } = await watch(() => 50 * gigabyte);
  its.sandbox = new Error('no user namespaces');
  sick.doubt();
  await expect.poll(() => sick.problem()).toBe('a test sandbox could not be made: no user namespaces');
  await sick.check();
  expect([its.tried, its.changes.length]).toEqual([2, 1]);
  its.sandbox = undefined;
  await sick.check();
  expect(sick.problem()).toBeUndefined();
});
