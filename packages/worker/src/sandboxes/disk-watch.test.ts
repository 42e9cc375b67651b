import { expect, test } from 'vitest';
import { type DiskWatch, watchDisk } from './disk-watch.ts';
import type { SandboxVerdict } from './sandbox.ts';

/**
 * Returns the verdict of a watch that gets the results of these functions as measurements. The last function is used again for all
 * further measurements.
 */
function verdict(...measurements: DiskWatch['measure'][]): Promise<{ verdict: SandboxVerdict; looks: number }> {
  let looks = 0;
  return new Promise((resolve) => {
    watchDisk({
      limitMb: 1,
      measurementMs: 50,
      measure(signal) {
        const measure = measurements[Math.min(looks, measurements.length - 1)];
        looks += 1;
        return measure?.(signal) ?? Promise.resolve(0);
      },
      onFull: (verdict) => resolve({ verdict, looks }),
    });
  });
}

const little = async () => 1024;
const much = async () => 2 * 1024 * 1024;
const fails = async () => {
  throw new Error('no process to spare');
};
const hangs = () => new Promise<number>(() => {});

test('the watch ends a sandbox over the limit and reports the size', async () => {
  expect((await verdict(little, much)).verdict).toMatchObject({
    reason: 'disk_limit',
    message: expect.stringContaining('had 2 MB, more than the 1 MB'),
  });
});

test('the watch ends a sandbox after two failed measurements in a row and reports the reason of the failure', async () => {
  const { verdict: end, looks } = await verdict(fails);
  expect(end).toMatchObject({ reason: 'disk_limit', message: expect.stringContaining('no process to spare') });
  expect(looks).toBe(2);
});

test('the watch ends a sandbox whose measurement takes too long', async () => {
  expect((await verdict(hangs)).verdict).toMatchObject({
    reason: 'disk_limit',
    message: expect.stringContaining('more than 0.05 s'),
  });
});

test('the watch ignores a single failed measurement', async () => {
  expect((await verdict(fails, little, fails, much)).looks).toBe(4);
});
