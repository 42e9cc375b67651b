import { expect, test } from 'vitest';
import { shapedLimits } from './limits.ts';

const limits = { memoryMb: 2048, processes: 64, tmpMb: 512, diskMb: 4096 };

test.each([
  [undefined, 2048, 512],
  [1, 1024, 512],
  [0.25, 256, 256],
  [0.001, 128, 128],
  [64, 2048, 512],
])(
  'lowers the memory to that of a machine with %s GB, never above the worker’s limit',
  (memory_gb, memoryMb, tmpMb) => {
    const shape = memory_gb === undefined ? undefined : { memory_gb };
    expect(shapedLimits(limits, shape)).toEqual({ ...limits, memoryMb, tmpMb });
  },
);
