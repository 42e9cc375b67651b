import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** Age above which a folder is removed. A read takes less than a minute, so an older folder belongs to a process that was killed. */
export const leftoverMs = 10 * 60_000;

/** Returns the folder in which repositories are stored while they are being read. */
export const readFolder = (dataDir: string): string => path.join(dataDir, 'repositories');

/** Removes folders that were left by a crash during a read. */
export async function removeLeftovers(folder: string, nowMs: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const leftover = path.join(folder, name);
    const changed = await stat(leftover).catch(() => null);
    if (changed && nowMs - changed.mtimeMs > leftoverMs) await rm(leftover, { recursive: true, force: true });
  }
}
