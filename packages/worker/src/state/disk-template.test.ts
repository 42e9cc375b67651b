import { execFileSync } from 'node:child_process';
import { open, stat } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { parseExtents, readTemplate, writeTemplate } from './disk-template.ts';

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
  // The test needs a folder on a disk, because other file systems, such as tmpfs, cannot list the holes of a file.
  top = newFolder('/var/tmp/runyard-template-');
});

async function emptyFile(name: string, size: number) {
  const file = path.join(top, name);
  const handle = await open(file, 'wx');
  await handle.truncate(size);
  return { file, handle };
}

describe.skipIf(!hasPrograms)('the template of a disk', () => {
  test.each([48, 4536])('makes a disk of %d MB that has no file system errors and takes little space', async (mb) => {
    const { file: first, handle } = await emptyFile('first', mb * megabyte);
    await handle.close();
    call('mkfs.ext4', '-q', '-F', '-O', '^has_journal,^resize_inode', '-E', 'lazy_itable_init=1,nodiscard', first);
    const template = await readTemplate(first);
    if (template === undefined) return expect.soft(call('filefrag', '-e', first)).toMatch(/unsupported/i);
    const second = await emptyFile('second', mb * megabyte);
    await writeTemplate(second.handle, template);
    await second.handle.close();
    // `e2fsck` fails for any fault, including a wrong checksum.
    call('e2fsck', '-f', '-n', second.file);
    expect(call('dumpe2fs', second.file)).toBe(call('dumpe2fs', first));
    // The new file must have holes where the first file has holes.
    expect((await stat(second.file)).blocks * 512).toBeLessThan(2 * megabyte);
  });

  test('is not made from a file that has no data at its start', async () => {
    const { file, handle } = await emptyFile('image', megabyte);
    await handle.close();
    expect(await readTemplate(file)).toBeUndefined();
  });
});

describe('the list of extents', () => {
  const head = 'Filesystem type is: ef53\nFile size of t.img is 4758437888 (1161728 blocks of 4096 bytes)\n';
  const columns = ' ext:     logical_offset:        physical_offset: length:   expected: flags:\n';
  const first = '   0:        0..       2:   40544768..  40544770:      3:            \n';

  test('is parsed into the written ranges in bytes', () => {
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
  ])('is refused with %s', (_which, output) => {
    expect(parseExtents(output)).toBeUndefined();
  });
});
