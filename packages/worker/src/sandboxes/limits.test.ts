import { expect, test } from 'vitest';
import { filesOfProcess, shapedLimits } from './limits.ts';

const limits = { memoryMb: 2048, processes: 64, tmpMb: 512, diskMb: 4096, openFiles: 65_536, cpus: 0 };

test.each([
  [undefined, 2048, 512],
  [1, 1024, 512],
  [0.25, 256, 256],
  [0.001, 128, 128],
  [64, 2048, 512],
])(
  'an instance shape with %s GB lowers the memory, and never raises it above the limit of the worker',
  (memory_gb, memoryMb, tmpMb) => {
    const shape = memory_gb === undefined ? undefined : { memory_gb, vcpus: 2 };
    expect(shapedLimits(limits, shape)).toEqual({ ...limits, memoryMb, tmpMb, cpus: shape === undefined ? 0 : 2 });
    expect(shapedLimits({ ...limits, cpus: 1 }, shape).cpus).toBe(1);
  },
);

test.each([
  ['its share of the files of the sandbox', { openFiles: 393_216, processes: 512 }, 768],
  ['more where the sandbox has fewer processes', { openFiles: 393_216, processes: 64 }, 6_144],
  ['at most what the machine allows', { openFiles: 100_000_000, processes: 16 }, 65_536],
  ['as many as Node needs', { openFiles: 16_384, processes: 100_000 }, 64],
])('filesOfProcess allows a process to open %s', (_, given, files) => {
  expect(filesOfProcess({ ...limits, ...given }, 65_536)).toBe(files);
});
