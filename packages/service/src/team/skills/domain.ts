import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';
import type { Domain } from '../../platform/domain.ts';
import { deleteSkillFiles, skillBlobs } from './of-run.ts';

/** A read takes less than a minute. An older folder belongs to a process that was killed. */
const leftoverMs = 10 * 60_000;

/** Returns the folder in which repositories are while they are read. */
export const readFolder = (dataDir: string): string => path.join(dataDir, 'repositories');

export function skillsDomain({ settings }: { readonly settings: Pick<Settings, 'RUNYARD_DATA_DIR'> }): Domain {
  return {
    name: 'skills',
    blobs: [skillBlobs],
    retention: { deleteRunDetail: deleteSkillFiles },
    loops: async () => [
      {
        name: 'sweep of repositories that were read',
        everyMs: leftoverMs,
        work: () => removeLeftovers(readFolder(path.resolve(settings.RUNYARD_DATA_DIR)), Date.now()),
      },
    ],
  };
}

/** Removes folders of reads that a crash ended. */
export async function removeLeftovers(folder: string, nowMs: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const leftover = path.join(folder, name);
    const changed = await stat(leftover).catch(() => null);
    if (changed && nowMs - changed.mtimeMs > leftoverMs) await rm(leftover, { recursive: true, force: true });
  }
}
