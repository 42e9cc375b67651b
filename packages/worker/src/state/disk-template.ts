/**
 * The contents of an ext4 image that was just made. Writing them into another file makes the next image without `mkfs.ext4`, whose start
 * takes most of the processor time (`bench/disks.md`).
 */
import { execFile } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const options = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }, timeout: 30_000 };

/** The parts of a new image that are not holes. */
export type DiskTemplate = readonly { readonly offset: number; readonly bytes: Buffer }[];

/** Most bytes of all extents together. The extents of an image for 4 GB have 48 KB. */
const mostBytes = 2 * 1024 * 1024;

/**
 * Reads the template from an image that was just made and never mounted. Returns undefined if the file system that holds the image cannot
 * list the image's holes (FIEMAP of `filefrag`, which comes with mkfs.ext4).
 */
export async function readTemplate(file: string): Promise<DiskTemplate | undefined> {
  const listed = await run('filefrag', ['-e', '--', file], options).catch(() => undefined);
  const ranges = listed && parseExtents(listed.stdout);
  if (ranges === undefined) return undefined;
  const handle = await open(file, 'r');
  try {
    const extents: { offset: number; bytes: Buffer }[] = [];
    for (const { offset, length } of ranges) extents.push({ offset, bytes: await readAll(handle, offset, length) });
    return extents;
  } finally {
    await handle.close();
  }
}

/** Writes a new file system into an empty file that has the size of the template's image. */
export async function writeTemplate(handle: FileHandle, template: DiskTemplate): Promise<void> {
  for (const { offset, bytes } of template) await handle.write(bytes, 0, bytes.length, offset);
}

/** Returns the written ranges in bytes; undefined if the output is unexpected, or if there are too many ranges. */
export function parseExtents(output: string): { offset: number; length: number }[] | undefined {
  const blockBytes = Number(/\bblocks? of (\d+) bytes\)/.exec(output)?.[1]);
  const rows = [...output.matchAll(/^\s*\d+:\s*(\d+)\.\.\s*(\d+):.*:\s*([a-z_,]*)\s*$/gm)];
  const count = Number(/: (\d+) extents? found/.exec(output)?.[1]);
  if (!(blockBytes > 0) || rows.length === 0 || rows.length < count) return undefined;
  const ranges = rows
    // Skips unwritten extents: like holes, they contain only zeros.
    .filter(([, , , flags = '']) => !flags.split(',').includes('unwritten'))
    .map(([, first, last]) => ({
      offset: Number(first) * blockBytes,
      length: (Number(last) - Number(first) + 1) * blockBytes,
    }));
  const sum = ranges.reduce((total, { length }) => total + length, 0);
  return sum <= mostBytes && ranges[0]?.offset === 0 ? ranges : undefined;
}

/** Reads a range. If the end of the file cuts a range, the rest of the range is filled with zeros. */
async function readAll(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, offset + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes;
}
