import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';

/** A read takes less than a minute. An older folder belongs to a process that was killed. */
export const leftoverMs = 10 * 60_000;

/** Returns the folder that holds repositories while they are read. */
export const readFolder = (dataDir: string): string => path.join(dataDir, 'repositories');

/** Removes folders of reads that a crash ended. */
export async function removeLeftovers(folder: string, nowMs: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const leftover = path.join(folder, name);
    const changed = await stat(leftover).catch(() => null);
    if (changed && nowMs - changed.mtimeMs > leftoverMs) await rm(leftover, { recursive: true, force: true });
  }
}
