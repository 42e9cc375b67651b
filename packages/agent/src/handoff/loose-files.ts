import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Maximum number of files that a snapshot has of a workspace without a git repository, of their bytes, and of the bytes of one file. */
export const looseLimits = { files: 30, bytes: 20 * 1024 * 1024, bytesOfOne: 5 * 1024 * 1024 } as const;

const maxDepth = 6;
/** Maximum number of files and folders that are looked at. */
const maxSeen = 5_000;
/** Folders with files that programs have installed. The folder of attachments has only files that a person sent. */
const skipped: readonly string[] = ['node_modules', '__pycache__', 'venv'];

interface LooseFile {
  /** Path in the workspace. */
  readonly path: string;
  readonly size: number;
  readonly changedMs: number;
}

/**
 * Returns the paths of the newest files of a workspace, relative to it and sorted. Leaves out hidden, large and installed files. Links are
 * not followed.
 */
export async function looseFiles(workspace: string): Promise<string[]> {
  const found: LooseFile[] = [];
  let seen = 0;
  const look = async (folder: string, depth: number): Promise<void> => {
    const entries = await readdir(join(workspace, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      seen += 1;
      if (seen > maxSeen) return;
      const path = join(folder, entry.name);
      if (entry.name.startsWith('.') || path === 'attachments') continue;
      if (entry.isDirectory()) {
        if (depth < maxDepth && !skipped.includes(entry.name)) await look(path, depth + 1);
      } else if (entry.isFile()) {
        const stat = await lstat(join(workspace, path)).catch(() => undefined);
        if (stat?.isFile() && stat.size <= looseLimits.bytesOfOne)
          found.push({ path, size: stat.size, changedMs: stat.mtimeMs });
      }
    }
  };
  await look('', 0);
  let room = looseLimits.bytes;
  const newest = found.sort((a, b) => b.changedMs - a.changedMs || (a.path < b.path ? -1 : 1));
  const kept = newest.slice(0, looseLimits.files).filter(({ size }) => {
    if (size > room) return false;
    room -= size;
    return true;
  });
  return kept.map(({ path }) => path).sort();
}
