import { spawn } from 'node:child_process';
import { chmod, mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { canFreeze, freeze } from '../../test/freezer.ts';
import { makeFolders, removeFolders } from '../sandboxes/folders.ts';
import { lockDataFolder } from './data-folder-lock.ts';
import { findProcesses, killUntilGone } from './processes.ts';
import { chooseStateRoot, removeAbandonedRoots } from './state-root.ts';

const asRoot = process.getuid?.() === 0;
let dataDir: string;
beforeEach(() => {
  dataDir = newFolder();
});

test('lockDataFolder gives the lock to one process at a time', async () => {
  const first = await lockDataFolder(dataDir);
  if ('heldBy' in first) throw new Error('held');
  expect(await lockDataFolder(dataDir)).toEqual({ heldBy: `process ${process.pid}` });
  await first.release();
  const second = await lockDataFolder(dataDir);
  if ('heldBy' in second) throw new Error('held');
  expect(second.instanceId).not.toBe(first.instanceId);
  await second.release();
});

test('lockDataFolder gives the lock to only one of twenty concurrent callers', async () => {
  const results = await Promise.all(Array.from({ length: 20 }, () => lockDataFolder(dataDir)));
  const winners = results.filter((result) => !('heldBy' in result));
  expect(winners).toHaveLength(1);
  for (const winner of winners) if (!('heldBy' in winner)) await winner.release();
});

test('lockDataFolder takes the lock even if the file about the last holder is damaged', async () => {
  await mkdir(path.join(dataDir, 'worker'));
  await writeFile(path.join(dataDir, 'worker/holder.json'), '{"instance_id":');
  const lock = await lockDataFolder(dataDir);
  if ('heldBy' in lock) throw new Error('held');
  await lock.release();
});

test('chooseStateRoot chooses the data folder if the users of sandboxes can enter it', async () => {
  await chmod(dataDir, 0o711);
  const worker = path.join(dataDir, 'worker');
  await mkdir(worker);
  expect((await chooseStateRoot(worker)).folder).toBe(path.join(worker, 'state'));
});

test.runIf(asRoot)(
  'chooseStateRoot chooses another folder if the data folder is private, and returns the reason',
  async () => {
    await chmod(dataDir, 0o700);
    const worker = path.join(dataDir, 'worker');
    await mkdir(worker);
    const root = await chooseStateRoot(worker);
    try {
      expect(root.folder).not.toContain(dataDir);
      expect(root.folder.length).toBeLessThan(80);
      expect(root.because).toContain('does not let other users pass');
    } finally {
      await rm(root.folder, { recursive: true });
    }
  },
);

test('chooseStateRoot chooses another folder if the path would be too long for a socket', async () => {
  const worker = path.join(dataDir, 'x'.repeat(100), 'worker');
  await mkdir(worker, { recursive: true });
  await chmod(dataDir, 0o711);
  const root = await chooseStateRoot(worker);
  expect(root.because).toContain('too long');
  await rm(root.folder, { recursive: true });
});

test('removeAbandonedRoots removes a state root only if its data folder no longer exists', async () => {
  const kept = path.join(dataDir, 'runyard-0123456789ab');
  const gone = path.join(dataDir, 'runyard-ba9876543210');
  const foreign = path.join(dataDir, 'runyard-000000000000');
  for (const folder of [kept, gone, foreign]) await mkdir(path.join(folder, 's'), { recursive: true });
  await writeFile(path.join(kept, 'state-of'), `${dataDir}\n`);
  await writeFile(path.join(gone, 'state-of'), `${dataDir}/worker\n`);
  expect(await removeAbandonedRoots([dataDir, '/nowhere'])).toEqual([gone]);
  expect((await readdir(dataDir)).sort()).toEqual([path.basename(foreign), path.basename(kept)]);
});

test('removeAbandonedRoots removes a state root without the name of its owner if it contained only trash for an hour', async () => {
  const roots = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb', 'cccccccccccc'].map((id) => path.join(dataDir, `runyard-${id}`));
  const [old = '', used = '', young = ''] = roots;
  for (const root of roots) await mkdir(path.join(root, 'trash'), { recursive: true });
  await mkdir(path.join(used, 's'));
  const twoHoursAgo = new Date(Date.now() - 2 * 3_600_000);
  for (const root of [old, used]) await utimes(root, twoHoursAgo, twoHoursAgo);
  expect(await removeAbandonedRoots([dataDir])).toEqual([old]);
  expect((await readdir(dataDir)).sort()).toEqual([path.basename(used), path.basename(young)]);
});

test('removeFolders does not create the state root again if it was removed', async () => {
  const root = path.join(dataDir, 'state');
  await mkdir(root);
  await makeFolders(root, 'kept', {});
  await removeFolders(root, 'kept');
  expect((await readdir(root)).sort()).toEqual(['s', 'trash']);
  await rm(root, { recursive: true });
  await removeFolders(root, 'kept');
  await expect(makeFolders(root, 'late', {})).rejects.toThrow('ENOENT');
  expect(await readdir(dataDir)).toEqual([]);
});

test('findProcesses finds no process by an argument that no process has, not even the process that searches', async () => {
  expect(await findProcesses('cmdline', 'no process has this argument')).toEqual([]);
});

test.runIf(await canFreeze())(
  'killUntilGone waits for a killed process that has lost its marks but still exists',
  async () => {
    const mark = `4725.${process.pid}`;
    const child = spawn('sleep', [mark], { stdio: 'ignore' });
    await using frozen = await freeze(mark);
    try {
      const marked = [await findProcesses('cmdline', mark), []];
      expect(marked[0]).toEqual([child.pid]);
      let slow: readonly number[] | undefined;
      await killUntilGone(
        async () => marked.shift() ?? [],
        (pids) => {
          slow = pids;
          void frozen.thaw();
        },
      );
      expect(slow).toEqual([child.pid]);
      expect(await findProcesses('cmdline', mark)).toEqual([]);
    } finally {
      child.kill('SIGKILL');
    }
  },
);
