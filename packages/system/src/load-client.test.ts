import { expect, test } from 'vitest';
import { loadClient } from './load-client.ts';

test('the error about a missing library says how to install it, and other errors stay as they are', async () => {
  const missing = 'no-such-library';
  await expect(loadClient('RUNYARD_BLOBS=s3://…', () => import(missing))).rejects.toThrow(
    'the packages for RUNYARD_BLOBS=s3://… are not installed: start this program with bin/runyard and RUNYARD_BLOBS=s3://…, or run npm ci',
  );
  const fault = new Error('a fault of the library');
  await expect(loadClient('RUNYARD_BLOBS=s3://…', () => Promise.reject(fault))).rejects.toBe(fault);
  expect(await loadClient('RUNYARD_BLOBS=s3://…', () => import('./load-client.ts'))).toHaveProperty('loadClient');
});
