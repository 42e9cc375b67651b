import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  statfs,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { folderCopies } from '../sandboxes/bubblewrap/copy-folders.ts';
import { findBubblewrap } from '../sandboxes/bubblewrap/find-bubblewrap.ts';
import { makeFolders, removeFolders, removeLeftovers } from '../sandboxes/folders.ts';
import { isMounted, mountImage, probeImages, unmountBelow, unmountImage } from '../state/disk-image.ts';
import { runInShell } from '../state/mount-shell.ts';
import { sandboxPlaces, systemFolders } from '../state/sandbox-places.ts';
import { openBudget } from './budget.ts';
import { openKeptWorkspaces } from './kept-workspaces.ts';

const megabyte = 2 ** 20;
const diskMb = 32;

const probed = await mkdtemp(path.join(os.tmpdir(), 'runyard-kept-probe-'));
const disks = await probeImages(probed);
await rm(probed, { recursive: true });
const canCopyFolders = (await findBubblewrap()) !== undefined;

let top: string;
let stateRoot: string;
beforeEach(async () => {
  top = newFolder();
  stateRoot = path.join(top, 'state');
  await mkdir(stateRoot);
});
afterEach(async () => {
  await unmountBelow(top);
});

const openKept = (maxMb = 1000, now = Date.now) =>
  openKeptWorkspaces({ stateRoot, budget: openBudget(maxMb * megabyte), folders: folderCopies, now });

let last = 0;
/** Makes the folders of a sandbox, and returns its id and its places. */
async function makeSandbox(withDisk: boolean, files: Readonly<Record<string, string | Buffer>> = {}) {
  last += 1;
  const id = `sandbox${last}`;
  // Without disks, sandboxes have the user of the worker.
  await makeFolders(stateRoot, id, withDisk ? { uid: 70_000 + last, diskMb } : {});
  const places = sandboxPlaces(stateRoot, id);
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(places.workspace, name), content);
  return { id, ...places };
}
const textOf = (sandbox: { workspace: string }, name = 'file') => readFile(path.join(sandbox.workspace, name), 'utf8');
const keptFolder = () => path.join(stateRoot, 'kept');

describe.each([
  { kind: 'disk', withDisk: true, isPossible: disks.ok },
  { kind: 'folders', withDisk: false, isPossible: canCopyFolders },
])('a kept workspace of the kind $kind', ({ kind, withDisk, isPossible }) => {
  describe.skipIf(!isPossible)('', () => {
    test('gives each sandbox its own copy, which belongs to the user of the sandbox', async () => {
      const kept = await openKept();
      const first = await makeSandbox(withDisk, { file: 'kept' });
      await symlink('/etc/shadow', path.join(first.workspace, 'link'));
      await writeFile(path.join(first.home, 'of-home'), 'home');
      expect(await kept.keep('name', first.id)).toMatchObject({ type: 'kept' });
      await writeFile(path.join(first.workspace, 'file'), 'changed by the first');
      const second = await makeSandbox(withDisk);
      expect(await kept.use('name', second.id)).toBe(true);
      expect(await textOf(second)).toBe('kept');
      expect(await readFile(path.join(second.home, 'of-home'), 'utf8')).toBe('home');
      expect((await stat(path.join(second.workspace, 'file'))).uid).toBe((await stat(second.workspace)).uid);
      await writeFile(path.join(second.workspace, 'file'), 'changed by the second');
      const third = await makeSandbox(withDisk);
      expect(await kept.use('name', third.id)).toBe(true);
      expect([await textOf(first), await textOf(second), await textOf(third)]).toEqual([
        'changed by the first',
        'changed by the second',
        'kept',
      ]);
      for (const { id } of [first, second, third]) await removeFolders(stateRoot, id);
      expect(await readdir(path.join(stateRoot, 's'))).toEqual([]);
      expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(stateRoot);
      expect(await readdir(path.join(stateRoot, 'trash'))).toEqual([]);
    });

    test('is found only by its own name, and survives a restart of the worker but not of the machine', async () => {
      const first = await makeSandbox(withDisk, { file: 'kept' });
      await (await openKept()).keep('name', first.id);
      const kept = await openKept();
      const other = await makeSandbox(withDisk);
      expect(await kept.find('other name')).toBeUndefined();
      expect(await kept.use('other name', other.id)).toBe(false);
      expect((await kept.find('name'))?.bytes).toBeGreaterThan(0);
      expect((await readdir(keptFolder())).join()).not.toMatch(/name/);
      const [folder = ''] = await readdir(keptFolder());
      const about = path.join(keptFolder(), folder, 'about.json');
      await writeFile(about, (await readFile(about, 'utf8')).replace(/"boot":"[^"]+"/, '"boot":"an earlier one"'));
      expect(await (await openKept()).find('name')).toBeUndefined();
      expect(await readdir(keptFolder())).toEqual([]);
    });

    test('is not used after a week', async () => {
      let time = Date.UTC(2026, 0, 1);
      const kept = await openKept(1000, () => time);
      await kept.keep('name', (await makeSandbox(withDisk)).id);
      time += 7 * 24 * 3_600_000;
      expect(await kept.use('name', (await makeSandbox(withDisk)).id)).toBe(false);
      expect(await readdir(keptFolder())).toEqual([]);
    });

    test('is refused with the reason if it needs too much of the cache, and displaces the one that was not used for longest', async () => {
      const big = { file: Buffer.alloc(12 * megabyte, 1) };
      const kept = await openKept(34);
      const sandboxes = [await makeSandbox(withDisk, big), await makeSandbox(withDisk, big)];
      for (const [index, { id }] of sandboxes.entries()) {
        expect(await kept.keep(`name ${index}`, id)).toMatchObject({ type: 'kept' });
      }
      expect(await kept.use('name 0', (await makeSandbox(withDisk)).id)).toBe(true);
      expect(await kept.keep('name 2', sandboxes[0]?.id ?? '')).toMatchObject({ type: 'kept' });
      const isThere = await Promise.all([0, 1, 2].map((n) => kept.find(`name ${n}`)));
      expect(isThere.map((found) => found !== undefined)).toEqual([true, false, true]);
      const small = await openKept(20);
      expect(await small.keep('name', sandboxes[0]?.id ?? '')).toMatchObject({
        type: 'too_large',
        reason: expect.stringMatching(/^it has 1[2-5] MB, and one workspace may have 10 MB, half of RUNYARD_WORKER/),
      });
    });

    test('is not used and is removed if a part of it is missing', async () => {
      const kept = await openKept();
      await kept.keep('name', (await makeSandbox(withDisk, { file: 'kept' })).id);
      const [folder = ''] = await readdir(keptFolder());
      if (kind === 'disk') await truncate(path.join(keptFolder(), folder, 'disk'), megabyte);
      else await rm(path.join(keptFolder(), folder, 'about.json'));
      const second = await makeSandbox(withDisk);
      expect(await kept.use('name', second.id)).toBe(false);
      expect(await readdir(keptFolder())).toEqual([]);
      expect(await readdir(second.workspace)).toEqual([]);
    });

    test('does not exist if its worker was killed before it was complete', async () => {
      await openKept();
      await mkdir(path.join(stateRoot, 'trash/kept-0'));
      await mkdir(path.join(keptFolder(), 'half'));
      expect(await (await openKept()).find('name')).toBeUndefined();
      await removeLeftovers(stateRoot);
      expect(await readdir(keptFolder())).toEqual([]);
      expect(await readdir(path.join(stateRoot, 'trash'))).toEqual([]);
    });

    test('is neither made nor used if the disk of the machine is full, but stays for later', async () => {
      const small = path.join(top, 'small');
      await mkdir(small);
      if (!disks.ok) return;
      await mountImage(path.join(top, 'small.img'), small, 80);
      onTestFinished(() => unmountBelow(small));
      stateRoot = path.join(small, 'state');
      await mkdir(stateRoot);
      const kept = await openKept();
      const first = await makeSandbox(withDisk, { file: Buffer.alloc(16 * megabyte, 1) });
      expect(await kept.keep('name', first.id)).toMatchObject({ type: 'kept' });
      const fill = path.join(small, 'fill');
      const { bavail, bsize } = await statfs(small);
      await writeFile(fill, Buffer.alloc(bavail * bsize - 8 * megabyte, 1));
      expect(await kept.keep('other', first.id)).toMatchObject({
        type: 'too_large',
        reason: expect.stringContaining("the worker's disk has room for"),
      });
      const second = await makeSandbox(withDisk);
      await expect(kept.use('name', second.id)).rejects.toThrow('No space left on device');
      expect(await isMounted(second.workspace)).toBe(false);
      await rm(fill);
      const third = await makeSandbox(withDisk);
      expect(await kept.use('name', third.id)).toBe(true);
      expect((await stat(path.join(third.workspace, 'file'))).size).toBe(16 * megabyte);
      for (const { id } of [first, second, third]) await removeFolders(stateRoot, id);
    });
  });
});

test.skipIf(!canCopyFolders)('a link in a folder does not lead its copy to files of the machine', async () => {
  const outside = path.join(top, 'outside');
  await writeFile(outside, 'of the machine');
  const kept = await openKept();
  await kept.keep('name', (await makeSandbox(false, { file: 'of a run' })).id);
  const second = await makeSandbox(false);
  await symlink(outside, path.join(second.workspace, 'file'));
  await mkdir(path.join(second.workspace, 'folder'));
  await symlink(top, path.join(second.workspace, 'folder/up'));
  expect(await kept.use('name', second.id)).toBe(true);
  expect(await textOf(second)).toBe('of a run');
  expect(await readFile(outside, 'utf8')).toBe('of the machine');
});

describe.skipIf(!disks.ok)('a kept disk', () => {
  test('is not made while a file of the sandbox is open for writing, and the disk is writable afterwards', async () => {
    const kept = await openKept();
    const sandbox = await makeSandbox(true, { file: 'x' });
    const file = await open(path.join(sandbox.workspace, 'file'), 'a');
    expect(await kept.keep('name', sandbox.id)).toEqual({ type: 'in_use' });
    await file.write('y');
    await file.close();
    expect(await kept.keep('name', sandbox.id)).toMatchObject({ type: 'kept' });
    await writeFile(path.join(sandbox.workspace, 'file'), 'z');
  });

  test('is removed if it is damaged, and the sandbox keeps its own empty folders', async () => {
    const kept = await openKept();
    await kept.keep('name', (await makeSandbox(true, { file: 'kept' })).id);
    const [folder = ''] = await readdir(keptFolder());
    const disk = await open(path.join(keptFolder(), folder, 'disk'), 'r+');
    await disk.write(Buffer.alloc(65_536, 7), 0, 65_536, 0);
    await disk.close();
    const second = await makeSandbox(true);
    expect(await kept.use('name', second.id)).toBe(false);
    expect(await isMounted(second.workspace)).toBe(false);
    await writeFile(path.join(second.workspace, 'file'), 'own');
    expect(await readdir(keptFolder())).toEqual([]);
    expect(await readdir(path.join(stateRoot, 'trash'))).toEqual([]);
  });

  test('leaves the disk of the sandbox writable if its worker is killed at any time', async () => {
    const program = [
      `import { copyDisk } from ${JSON.stringify(path.join(import.meta.dirname, '../state/disk-copies.ts'))};`,
      'const [places, copy] = process.argv.slice(1);',
      "console.log('begins'); await copyDisk(JSON.parse(places), copy); console.log('copied');",
    ].join('\n');
    const sandbox = await makeSandbox(true, { file: Buffer.alloc(24 * megabyte, 1) });
    for (let waitedMs = 0, copied = false; !copied; waitedMs += 7) {
      const copy = path.join(top, `copy-${waitedMs}`);
      const child = spawn(process.execPath, ['--input-type=module', '-e', program, JSON.stringify(sandbox), copy]);
      await once(child.stdout, 'data');
      const late = new Promise((resolve) => setTimeout(resolve, waitedMs));
      copied = await Promise.race([once(child.stdout, 'data').then(() => true), late.then(() => false)]);
      child.kill('SIGKILL');
      await expect.poll(() => writeFile(path.join(sandbox.workspace, 'file'), String(waitedMs))).toBeUndefined();
      await expect.poll(async () => await optionsOf(sandbox.top)).toMatch(/^rw/);
      await rm(copy, { force: true });
    }
  });

  test('is used whole or not at all if its worker is killed at any time', async () => {
    const program = [
      `import { useDiskCopy } from ${JSON.stringify(path.join(import.meta.dirname, '../state/disk-copies.ts'))};`,
      'const [copy, places, place] = process.argv.slice(1);',
      "console.log('begins'); await useDiskCopy(copy, JSON.parse(places), place); console.log('used');",
    ].join('\n');
    const kept = await openKept();
    const first = await makeSandbox(true, { file: Buffer.alloc(16 * megabyte, 1) });
    await kept.keep('name', first.id);
    const [folder = ''] = await readdir(keptFolder());
    const copy = path.join(keptFolder(), folder, 'disk');
    for (let waitedMs = 0, isUsed = false; !isUsed; waitedMs += 5) {
      const sandbox = await makeSandbox(true);
      const place = path.join(stateRoot, 'trash', `use-${waitedMs}`);
      await mkdir(place);
      const args = [program, copy, JSON.stringify(sandbox), place];
      const child = spawn(process.execPath, ['--input-type=module', '-e', ...args]);
      await once(child.stdout, 'data');
      const late = new Promise((resolve) => setTimeout(resolve, waitedMs));
      isUsed = await Promise.race([once(child.stdout, 'data').then(() => true), late.then(() => false)]);
      child.kill('SIGKILL');
      // The command that the worker had started may end later.
      const left = async () => {
        await removeLeftovers(stateRoot, new Set([first.id, sandbox.id]));
        const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
        const points = mounts.map((line) => line.split(' ')[4] ?? '').filter((point) => point.startsWith(stateRoot));
        return points.filter((point) => point !== first.top && path.dirname(point) !== sandbox.top).sort();
      };
      await expect.poll(left).toEqual([sandbox.top]);
      // The last command of the worker mounts both folders, one after the other.
      await expect
        .poll(async () => (await isMounted(sandbox.home)) === (await isMounted(sandbox.workspace)))
        .toBe(true);
      expect(await readdir(path.join(stateRoot, 'trash'))).toEqual([]);
      await removeFolders(stateRoot, sandbox.id);
    }
  });

  test('is unmounted with the sandbox, and stays mounted for the next worker that adopts the sandbox', async () => {
    const kept = await openKept();
    const withDebian = async (files?: Readonly<Record<string, string>>) => {
      const sandbox = await makeSandbox(true, files);
      for (const name of systemFolders) await mkdir(path.join(sandbox.system, name), { recursive: true });
      return sandbox;
    };
    const first = await withDebian({ file: 'kept' });
    for (const name of systemFolders) await writeFile(path.join(first.system, name, 'file'), name);
    await kept.keep('name', first.id);
    const second = await withDebian();
    await kept.use('name', second.id);
    await removeLeftovers(stateRoot, new Set([second.id]));
    expect(await textOf(second)).toBe('kept');
    for (const name of systemFolders) expect(await readFile(path.join(second.system, name, 'file'), 'utf8')).toBe(name);
    await removeLeftovers(stateRoot);
    expect(await readFile('/proc/self/mountinfo', 'utf8')).not.toContain(stateRoot);
  });

  test('shares its blocks with its copies on a file system that can clone files', async ({ skip }) => {
    const [image, folder] = [path.join(top, 'xfs.img'), path.join(top, 'xfs')];
    await mkdir(folder);
    await writeFile(image, '');
    await truncate(image, 512 * megabyte);
    const made = await runInShell(['mkfs.xfs', '-q', '-m', 'reflink=1', image]);
    if (made.type !== 'done') return skip('mkfs.xfs is not installed (package xfsprogs)');
    const mounted = await runInShell(['mount', '-o', 'loop', '--', image, folder]);
    if (mounted.type !== 'done') return skip('this kernel has no XFS');
    onTestFinished(() => unmountImage(image, folder));
    stateRoot = path.join(folder, 'state');
    await mkdir(stateRoot);
    const kept = await openKept();
    const first = await makeSandbox(true, { file: Buffer.alloc(24 * megabyte, 1) });
    execFileSync('sync', ['-f', first.top]);
    const used = async () => {
      execFileSync('sync', ['-f', folder]);
      const { blocks, bfree, bsize } = await statfs(folder);
      return (blocks - bfree) * bsize;
    };
    const before = await used();
    await kept.keep('name', first.id);
    const [second, third] = [await makeSandbox(true), await makeSandbox(true)];
    for (const { id } of [second, third]) expect(await kept.use('name', id)).toBe(true);
    expect((await used()) - before).toBeLessThan(12 * megabyte);
    await writeFile(path.join(second.workspace, 'file'), 'changed by the second');
    execFileSync('sync', ['-f', second.workspace]);
    expect((await stat(path.join(third.workspace, 'file'))).size).toBe(24 * megabyte);
    const fourth = await makeSandbox(true);
    expect(await kept.use('name', fourth.id)).toBe(true);
    expect((await readFile(path.join(fourth.workspace, 'file'))).every((byte) => byte === 1)).toBe(true);
    for (const { id } of [first, second, third, fourth]) await removeFolders(stateRoot, id);
  });
});

/** Returns the options of the file system that is mounted on the folder. */
async function optionsOf(folder: string): Promise<string | undefined> {
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return mounts
    .find((line) => line.split(' ')[4] === folder)
    ?.split(' - ')[1]
    ?.split(' ')[2];
}
