import { chmod, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Empties a folder, because half a workspace is worse than none. */
export async function clearFolder(folder: string): Promise<void> {
  await chmod(folder, 0o700).catch(() => {});
  for (const name of await readdir(folder).catch(() => [])) {
    await rm(join(folder, name), { recursive: true, force: true }).catch(() => {});
  }
}
