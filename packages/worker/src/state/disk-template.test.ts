import { execFileSync } from 'node:child_process';
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { crc32c, parseExtents, readTemplate, templateFeatures, writeTemplate } from './disk-template.ts';

const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
const call = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const hasPrograms = (() => {
  try {
    return call('sh', '-c', 'command -v mkfs.ext4 filefrag e2fsck dumpe2fs') !== '';
  } catch {
    return false;
  }
})();
const megabyte = 1024 * 1024;

let top: string;
beforeEach(async () => {
  top = await mkdtemp(path.join(os.tmpdir(), 'runyard-template-'));
});
afterEach(() => rm(top, { recursive: true }));

async function emptyFile(name: string, size: number) {
  const file = path.join(top, name);
  const handle = await open(file, 'wx');
  await handle.truncate(size);
  return { file, handle };
}

async function makeImage(name: string, size: number, features: string): Promise<string> {
  const { file, handle } = await emptyFile(name, size);
  await handle.close();
  call('mkfs.ext4', '-q', '-F', '-O', features, '-E', 'lazy_itable_init=1,nodiscard', file);
  return file;
}

describe.skipIf(!hasPrograms)('the template of a disk', () => {
  test.each([48, 4536])('makes sound file systems of %d MB, each with a UUID of its own', async (mb) => {
    const first = await makeImage('first', mb * megabyte, `^has_journal,^resize_inode,${templateFeatures}`);
    const template = await readTemplate(first);
    if (template === undefined) return expect.soft(call('filefrag', '-e', first)).toMatch(/unsupported/i);
    const uuids = new Set([call('dumpe2fs', '-h', first).match(/UUID:\s+(\S+)/)?.[1]]);
    const seeds = new Set([call('dumpe2fs', '-h', first).match(/Hash Seed:\s+(\S+)/)?.[1]]);
    for (const name of ['second', 'third']) {
      const { file, handle } = await emptyFile(name, mb * megabyte);
      await writeTemplate(handle, template);
      await handle.close();
      // Fails for any fault, also of a checksum.
      call('e2fsck', '-f', '-n', file);
      const about = call('dumpe2fs', '-h', file);
      uuids.add(about.match(/UUID:\s+(\S+)/)?.[1]);
      seeds.add(about.match(/Hash Seed:\s+(\S+)/)?.[1]);
      // Holes stay holes.
      expect((await stat(file)).blocks * 512).toBeLessThan(2 * megabyte);
    }
    expect([uuids.size, seeds.size]).toEqual([3, 3]);
  });

  test.each([
    ['whose checksums depend on the UUID', '^has_journal,metadata_csum,^metadata_csum_seed'],
    ['without checksums', '^has_journal,^metadata_csum'],
  ])('is not taken from an image %s', async (_which, features) => {
    expect(await readTemplate(await makeImage('image', 48 * megabyte, features))).toBeUndefined();
  });

  test('is not taken from an image with a damaged superblock', async () => {
    const file = await makeImage('image', 48 * megabyte, `^has_journal,${templateFeatures}`);
    const handle = await open(file, 'r+');
    await handle.write(Buffer.from([1]), 0, 1, 1024 + 0x10);
    await handle.close();
    expect(await readTemplate(file)).toBeUndefined();
  });

  test('is not taken from a file that is no image', async () => {
    const { file, handle } = await emptyFile('image', megabyte);
    await handle.write(Buffer.alloc(8192, 1), 0, 8192, 0);
    await handle.close();
    expect(await readTemplate(file)).toBeUndefined();
    expect((await readFile(file)).length).toBe(megabyte);
  });
});

describe('the list of extents', () => {
  const head = 'Filesystem type is: ef53\nFile size of t.img is 4758437888 (1161728 blocks of 4096 bytes)\n';
  const columns = ' ext:     logical_offset:        physical_offset: length:   expected: flags:\n';
  const first = '   0:        0..       2:   40544768..  40544770:      3:            \n';

  test('has the ranges that were written, in bytes', () => {
    const rows = [
      first,
      '   1:       34..      34:   40543742..  40543742:      1:   40544802:\n',
      '   2:  1161712.. 1161727:   40540464..  40540479:     16:   40690160: last,unwritten,eof\n',
    ];
    expect(parseExtents(`${head}${columns}${rows.join('')}t.img: 3 extents found\n`)).toEqual([
      { offset: 0, length: 3 * 4096 },
      { offset: 34 * 4096, length: 4096 },
    ]);
  });

  test.each([
    ['no list', `${head}FIBMAP/FIEMAP unsupported\n`],
    ['no size of a block', `${columns}${first}t.img: 1 extent found\n`],
    ['rows that are missing', `${head}${columns}${first}t.img: 7 extents found\n`],
    [
      'a hole at the start',
      `${head}${columns}   0:        7..       9:   1..  3:      3:    \nt.img: 1 extent found\n`,
    ],
    ['too much', `${head}${columns}   0:        0..   99999:   1..  100000: 100000:     \nt.img: 1 extent found\n`],
  ])('is refused if there is %s', (_which, output) => {
    expect(parseExtents(output)).toBeUndefined();
  });
});

test('the checksum is that of CRC-32C without its last inversion', () => {
  // The check value of CRC-32C for the digits 1 to 9 is e3069283.
  expect((crc32c(Buffer.from('123456789')) ^ 0xffffffff) >>> 0).toBe(0xe3069283);
});
