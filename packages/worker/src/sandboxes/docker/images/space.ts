import { statfs } from 'node:fs/promises';

/** Room on a disk, in bytes. */
export interface Space {
  readonly free: number;
  readonly total: number;
}

/** Room that a pull leaves free in any case. */
const leastFree = 512 * 1024 * 1024;
/** Largest room that is kept free during a pull that may be too large. */
const mostKept = 8 * 1024 * 1024 * 1024;

/** Returns the room on the disk of a folder; undefined if this process cannot see the folder. */
export async function readSpace(folder: string): Promise<Space | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && { free: found.bavail * found.bsize, total: found.blocks * found.bsize };
}

/**
 * Returns whether a pull must end for lack of room. Layers may be many times larger than the bytes that arrive, so a pull that took
 * more than `maxBytes` must leave a tenth of the disk. Whether the image is too large is decided after the pull, because other pulls
 * and programs write to the disk too.
 */
export function isNearlyFull(before: Space, now: Space, maxBytes: number): boolean {
  if (now.free < leastFree) return true;
  return before.free - now.free > maxBytes && now.free < Math.min(now.total / 10, mostKept);
}
