import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, statfs, unlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { mountImage, probeImages, unmountBelow, unmountImage } from './disk-image.ts';
import { idleShells } from './mount-shell.ts';

let top: string;
beforeEach(() => {
  top = newFolder();
});
afterEach(async () => {
  await unmountBelow(top);
});

const probed = await mkdtemp(path.join(os.tmpdir(), 'runyard-image-probe-'));
const support = await probeImages(probed);
await rm(probed, { recursive: true });

function endQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}

describe.skipIf(!support.ok)('the disk of a sandbox', () => {
  test('refuses data beyond its size, even in a deleted file that is still open', async () => {
    const [file, folder] = [path.join(top, 'image'), path.join(top, 'mounted with blank')];
    await mkdir(folder);
    await mountImage(file, folder, 16);
    expect(await readdir(folder)).toEqual([]);
    const handle = await open(path.join(folder, 'gone'), 'w');
    await unlink(path.join(folder, 'gone'));
    const fill = async () => {
      for (let written = 0; written < 80; written++) await handle.write(Buffer.alloc(1 << 20, 1));
    };
    await expect(fill()).rejects.toMatchObject({ code: 'ENOSPC' });
    const { blocks, bfree, bsize } = await statfs(folder);
    expect((blocks - bfree) * bsize).toBeGreaterThan(16 << 20);
    await handle.close();
    await unmountImage(file, folder);
    expect(await readdir(top)).toEqual(['mounted with blank']);
    expect((await stat(folder)).dev).toBe((await stat(top)).dev);
    await unmountImage(file, folder);
  });

  test('contains no data of other disks that were made from the same template', async () => {
    const disks = ['one', 'two', 'three'].map((name) => [path.join(top, `${name}.img`), path.join(top, name)] as const);
    for (const [file, folder] of disks) {
      await mkdir(folder);
      await mountImage(file, folder, 16);
      expect(await readdir(folder)).toEqual([]);
      await writeFile(path.join(folder, 'secret'), Buffer.alloc(1 << 20, 'secret'));
    }
    for (const [file, folder] of disks) await unmountImage(file, folder);
    const [[file, folder]] = disks as [(typeof disks)[0], ...typeof disks];
    await mountImage(file, folder, 16);
    expect(await readdir(folder)).toEqual([]);
    expect((await readFile(file)).includes('secret')).toBe(false);
  });

  test('is mounted and unmounted even if the shell that runs mount and umount is killed again and again', async () => {
    const [file, folder] = [path.join(top, 'image'), path.join(top, 'mounted')];
    await mkdir(folder);
    const isMounted = async () => (await stat(folder)).dev !== (await stat(top)).dev;
    for (const delayMs of [0, 1, 2, 3]) {
      const change = async (work: Promise<unknown>): Promise<void> => {
        const shell = idleShells().at(-1);
        // Takes the shell before the command begins, because `idleShells` does not return a shell that runs a command.
        const killed = delay(delayMs).then(() => shell !== undefined && endQuietly(shell));
        await Promise.all([work, killed]);
      };
      await change(mountImage(file, folder, 16));
      expect(await isMounted()).toBe(true);
      await change(unmountImage(file, folder));
      expect(await isMounted()).toBe(false);
      expect(await readdir(top)).toEqual(['mounted']);
    }
  });

  test('is unmounted by the next worker if its worker was killed', async () => {
    const folder = path.join(top, 'a b');
    await mkdir(folder);
    await mountImage(path.join(top, 'image'), folder, 16);
    await writeFile(path.join(folder, 'left'), 'x');
    await unmountBelow(top);
    expect(await readdir(folder)).toEqual([]);
  });
});
