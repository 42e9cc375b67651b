import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { removeOldTrees } from './system-tree.ts';

test('a tree is removed only if it was replaced so long ago that no sandbox copies it any more', async () => {
  const parent = await mkdtemp(path.join(os.tmpdir(), 'runyard-trees-'));
  onTestFinished(() => rm(parent, { recursive: true }));
  const [old, newer] = ['debian-old', 'debian-newer'].map((name) => path.join(parent, name)) as [string, string];
  for (const tree of [old, newer]) await mkdir(path.join(tree, 'usr'), { recursive: true });
  const changedAt = async (tree: string) => (await stat(tree)).ctimeMs;
  await expect
    .poll(async () => {
      await chmod(newer, 0o711);
      return (await changedAt(newer)) > (await changedAt(old));
    })
    .toBe(true);
  await removeOldTrees(parent, Date.now());
  expect((await readdir(parent)).sort()).toEqual(['debian-newer', 'debian-old']);
  await removeOldTrees(parent, Date.now() + 3_600_000);
  expect(await readdir(parent)).toEqual(['debian-newer']);
});
