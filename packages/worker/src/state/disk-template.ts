/**
 * Makes a new disk image as a copy of an empty ext4 image. This is faster than `mkfs.ext4`, because the start of that program takes most of
 * the processor time that it needs.
 */
import { execFile } from 'node:child_process';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const options = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }, timeout: 30_000 };

/** The parts of a new image that contain data. All other parts are holes. */
export type DiskTemplate = readonly { readonly offset: number; readonly bytes: Buffer }[];

/** Maximum number of bytes of all extents together. The extents of an image for 4 GB have 48 KB. */
const mostBytes = 2 * 1024 * 1024;

/**
 * Reads the template from an image that was just made and never mounted. Uses `filefrag`, which is installed together with mkfs.ext4, to
 * list the parts with data. Returns undefined if the file system that contains the image cannot list these parts (FIEMAP).
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

/** Writes a new file system into an empty file. The file must have the same size as the image of the template. */
export async function writeTemplate(handle: FileHandle, template: DiskTemplate): Promise<void> {
  for (const { offset, bytes } of template) await handle.write(bytes, 0, bytes.length, offset);
}

/**
 * Returns the ranges with data, in bytes, from the output of `filefrag`. Returns undefined if the output is unexpected or the ranges are
 * too large.
 */
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

/** Reads a range. If the range extends beyond the end of the file, the rest is filled with zeros. */
async function readAll(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, offset + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes;
}
