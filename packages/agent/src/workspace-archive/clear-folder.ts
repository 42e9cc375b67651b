import { chmod, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Empties a folder after a failed restore, because an incomplete workspace is worse than an empty workspace. */
export async function clearFolder(folder: string): Promise<void> {
  await chmod(folder, 0o700).catch(() => {});
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name);
    // An archive can contain folders without write permission, which only root can empty with `rm`.
    if (entry.isDirectory()) await clearFolder(path);
    await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
