import { mkdir, mkdtemp, open, readdir, rm, stat, statfs, unlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mountImage, probeImages, unmountBelow, unmountImage } from './disk-image.ts';

let top: string;
beforeEach(async () => {
  top = await mkdtemp(path.join(os.tmpdir(), 'runyard-image-'));
});
afterEach(async () => {
  await unmountBelow(top);
  await rm(top, { recursive: true });
});

const probed = await mkdtemp(path.join(os.tmpdir(), 'runyard-image-probe-'));
const support = await probeImages(probed);
await rm(probed, { recursive: true });

describe.skipIf(!support.ok)('a disk of a sandbox', () => {
  test('refuses files over its size, even in a file without a name', async () => {
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

  test('is found and unmounted when its worker was killed', async () => {
    const folder = path.join(top, 'a b');
    await mkdir(folder);
    await mountImage(path.join(top, 'image'), folder, 16);
    await writeFile(path.join(folder, 'left'), 'x');
    await unmountBelow(top);
    expect(await readdir(folder)).toEqual([]);
  });
});
