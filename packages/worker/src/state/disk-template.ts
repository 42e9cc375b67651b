/**
 * The contents of an ext4 image that was just made. Writing them into another file makes the next image without `mkfs.ext4`, whose start
 * takes more processor time than its work.
 */
import { execFile } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';

/** The CRC-32C polynomial, reversed (RFC 3385). */
const polynomial = 0x82f63b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  return value;
});

/** Returns the CRC-32C of the bytes as ext4 stores it: without the last inversion. */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (value >>> 8) ^ (table[(value ^ byte) & 0xff] ?? 0);
  return value >>> 0;
}

const run = promisify(execFile);
const options = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }, timeout: 30_000 };

/** A part of an image that is not a hole. */
interface Extent {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** The parts of a new image. The superblock is separate, because each image gets its own. */
export interface DiskTemplate {
  readonly superblock: Buffer;
  readonly extents: readonly Extent[];
}

/** Features of mkfs.ext4 that a template needs: checksums do not depend on the UUID, so an image can get another one. */
export const templateFeatures = 'metadata_csum,metadata_csum_seed';

/** Largest sum of the extents. An image for 4 GB has 48 KB. */
const mostBytes = 2 * 1024 * 1024;

/** Layout of the superblock: struct ext4_super_block in the kernel's fs/ext4/ext4.h. */
const superblockAt = 1024;
const superblockBytes = 1024;
const field = { magic: 0x38, incompatible: 0x60, readOnly: 0x64, uuid: 0x68, hashSeed: 0xec, checksum: 0x3fc };
const ext4Magic = 0xef53;
const hasChecksumSeed = 0x2000;
const hasChecksums = 0x400;

/**
 * Reads the template from an image that was just made and never mounted. Returns undefined if the image lacks the features, or if the
 * file system below the file cannot list its holes (FIEMAP of `filefrag`, which comes with mkfs.ext4).
 */
export async function readTemplate(file: string): Promise<DiskTemplate | undefined> {
  const listed = await run('filefrag', ['-e', '--', file], options).catch(() => undefined);
  const ranges = listed && parseExtents(listed.stdout);
  if (ranges === undefined) return undefined;
  const handle = await open(file, 'r');
  try {
    const extents: Extent[] = [];
    for (const { offset, length } of ranges) extents.push({ offset, bytes: await readAll(handle, offset, length) });
    const superblock = await readAll(handle, superblockAt, superblockBytes);
    return canChangeUuid(superblock) ? { superblock, extents } : undefined;
  } finally {
    await handle.close();
  }
}

/** Writes a new file system into an empty file that has the size of the template's image. Its UUID and hash seed are its own. */
export async function writeTemplate(handle: FileHandle, template: DiskTemplate): Promise<void> {
  for (const { offset, bytes } of template.extents) await handle.write(bytes, 0, bytes.length, offset);
  const own = Buffer.from(template.superblock);
  for (const at of [field.uuid, field.hashSeed]) randomUuid(own.subarray(at, at + 16));
  own.writeUInt32LE(crc32c(own.subarray(0, field.checksum)), field.checksum);
  await handle.write(own, 0, own.length, superblockAt);
}

/** Returns the ranges in bytes that were written; undefined if the output is not as expected, or if they are too many. */
export function parseExtents(output: string): { offset: number; length: number }[] | undefined {
  const blockBytes = Number(/\bblocks? of (\d+) bytes\)/.exec(output)?.[1]);
  const rows = [...output.matchAll(/^\s*\d+:\s*(\d+)\.\.\s*(\d+):.*:\s*([a-z_,]*)\s*$/gm)];
  const count = Number(/: (\d+) extents? found/.exec(output)?.[1]);
  if (!(blockBytes > 0) || rows.length === 0 || rows.length < count) return undefined;
  const ranges = rows
    // An unwritten extent reads as zeros, as a hole does.
    .filter(([, , , flags = '']) => !flags.split(',').includes('unwritten'))
    .map(([, first, last]) => ({
      offset: Number(first) * blockBytes,
      length: (Number(last) - Number(first) + 1) * blockBytes,
    }));
  const sum = ranges.reduce((total, { length }) => total + length, 0);
  return sum <= mostBytes && ranges[0]?.offset === 0 ? ranges : undefined;
}

function canChangeUuid(superblock: Buffer): boolean {
  return (
    superblock.readUInt16LE(field.magic) === ext4Magic &&
    (superblock.readUInt32LE(field.incompatible) & hasChecksumSeed) !== 0 &&
    (superblock.readUInt32LE(field.readOnly) & hasChecksums) !== 0 &&
    superblock.readUInt32LE(field.checksum) === crc32c(superblock.subarray(0, field.checksum))
  );
}

/** Fills sixteen bytes with a random UUID (RFC 9562, version 4). */
function randomUuid(bytes: Buffer): void {
  randomFillSync(bytes);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
}

/** Reads a range. A range that is cut by the end of the file gets zeros. */
async function readAll(handle: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await handle.read(bytes, at, length - at, offset + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return bytes;
}
