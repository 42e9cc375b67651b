import { expect, test } from 'vitest';
import { sharedBuffersMb } from './postmaster.ts';

test.each([
  { memory: 256, megabytes: 32 },
  { memory: 2048, megabytes: 64 },
  { memory: 24_000, megabytes: 128 },
])('caches $megabytes MB on a machine with $memory MB of memory', ({ memory, megabytes }) => {
  expect(sharedBuffersMb(memory * 2 ** 20)).toBe(megabytes);
});
