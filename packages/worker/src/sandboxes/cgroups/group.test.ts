import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { openCgroup } from './group.ts';

let root: string;
beforeEach(() => {
  root = newFolder();
});

const textOf = (file: string) => readFile(path.join(root, 'box', file), 'utf8');

test.each([
  [2, ['cpu.max', '150000 100000'], 'cpu.weight', ['1', '100']],
  [1, ['cpu.cfs_quota_us', '150000'], 'cpu.shares', ['2', '1024']],
] as const)(
  'limits processors with version %i, and gives a sandbox that waits the least share',
  async (version, limit, share, [least, usual]) => {
    const group = await openCgroup({ version, memory: root, pids: root, cpu: root }, 'box', {
      memoryMb: 64,
      processes: 16,
      cpus: 1.5,
    });
    expect(await textOf(limit[0])).toBe(limit[1]);
    group.rest(true);
    expect(await textOf(share)).toBe(least);
    group.rest(false);
    expect(await textOf(share)).toBe(usual);
  },
);

test('openCgroup sets no limit for processors if the hierarchy has no controller for processors', async () => {
  const group = await openCgroup({ version: 2, memory: root, pids: root }, 'box', {
    memoryMb: 64,
    processes: 16,
    cpus: 2,
  });
  group.rest(true);
  await expect(textOf('cpu.max')).rejects.toThrow('ENOENT');
  await expect(textOf('cpu.weight')).rejects.toThrow('ENOENT');
});
