/**
 * Detects a full disk before PostgreSQL fails. A checkpoint writes a few small files and the next segment of PostgreSQL's log. If
 * there is no room for them, PostgreSQL crashes and does not start again. So a file in the data folder reserves some space. While the
 * disk is full, the service stores nothing new, and gives the reserved space to PostgreSQL in small parts.
 */
import { randomFillSync } from 'node:crypto';
import { type FileHandle, open, stat, statfs, truncate } from 'node:fs/promises';
import type { StoreLog } from '../database/log.ts';

const mb = 1024 * 1024;

/** If less space than this is free, the disk counts as full. This is the size of one segment of PostgreSQL's log. */
export const leastFreeBytes = 16 * mb;

/** If less space than this is free, the service stores no large files. */
export const leastFreeForStreams = 128 * mb;

/** The size of the reserve: two segments of PostgreSQL's log. */
export const reserveBytes = 32 * mb;

/**
 * How many bytes of the reserve are released at a time. The parts are small, so that another program which fills the disk cannot take
 * the whole reserve at once.
 */
const sliceBytes = 8 * mb;

/** Whether there is room to write. */
export interface FreeSpace {
  /**
   * Returns the reason why nothing new can be stored; null if there is space. The result is that of the last `measure`.
   */
  problem(): string | null;
  /**
   * Reads the free space now. Returns why no large file can be stored; null if there is enough space. Large files are refused long
   * before other data, because the service may write much of them between two measurements.
   */
  streamProblem(): Promise<string | null>;
  /** Reads the free space, and releases or refills the reserve. Call this about once a second. */
  measure(): Promise<void>;
}

export interface FreeSpaceOptions {
  /** Any folder of the file system to watch. Messages name this folder. */
  readonly folder: string;
  /** Path of the file that reserves space. Absent: there is no reserve, because the database is on another disk. */
  readonly reserveFile?: string;
  readonly log: StoreLog;
  /** Returns the free bytes of the file system of a folder; default: asks the operating system. */
  readonly measureFree?: (folder: string) => Promise<number>;
}

/** Watches the file system of `folder`. */
export function watchFreeSpace(options: FreeSpaceOptions): FreeSpace {
  const { folder, reserveFile, log, measureFree = freeBytesOf } = options;
  let problem: string | null = null;
  return {
    problem: () => problem,
    streamProblem: async () => {
      const freeBytes = await measureFree(folder);
      if (freeBytes >= leastFreeForStreams) return problem;
      return `the disk of ${folder} has no room for large files (${Math.floor(freeBytes / mb)} MB free)`;
    },
    measure: async () => {
      const freeBytes = await measureFree(folder);
      const missing = reserveFile === undefined ? 0 : reserveBytes - (await sizeOf(reserveFile));
      if (freeBytes - missing >= leastFreeBytes) {
        if (reserveFile !== undefined && missing > 0) await growReserve(reserveFile);
        if (problem !== null)
          log.info({ folder, free_bytes: freeBytes }, 'the disk has room again: all is stored again');
        problem = null;
        return;
      }
      if (problem === null)
        log.error({ folder, free_bytes: freeBytes }, 'the disk is full: nothing new is stored until there is room');
      problem = `the disk of ${folder} is full (${Math.floor(freeBytes / mb)} MB free)`;
      if (reserveFile !== undefined && freeBytes < leastFreeBytes) await shrinkReserve(reserveFile);
    },
  };
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

async function shrinkReserve(file: string): Promise<void> {
  const size = await sizeOf(file);
  if (size > 0) await truncate(file, Math.max(0, size - sliceBytes));
}

/** Fills the reserve with random bytes, because a file system may compress other bytes or not store them. */
async function growReserve(file: string): Promise<void> {
  const handle = await open(file, 'a', 0o600);
  try {
    const bytes = randomFillSync(Buffer.alloc(mb));
    for (
      let size = (await handle.stat()).size;
      size < reserveBytes;
      size += await append(handle, bytes, reserveBytes - size)
    );
  } finally {
    await handle.close();
  }
}

async function append(handle: FileHandle, bytes: Buffer, most: number): Promise<number> {
  return (await handle.write(bytes, 0, Math.min(bytes.byteLength, most))).bytesWritten;
}

/** Always reports enough space. Used by tests, and by programs that do not watch a disk. */
export const unlimitedSpace: FreeSpace = {
  problem: () => null,
  streamProblem: async () => null,
  measure: async () => undefined,
};
