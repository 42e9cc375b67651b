import { fs } from '../builtin-modules.ts';
import type { ArchivedFolder } from './archived-folders.ts';

/** Above it looking costs as much as packing. */
const maxEntries = 5_000;

/**
 * Tells states of the folders apart without reading files: by name, kind, size, and times, of which the change time cannot
 * be set back. `empty`: there is nothing in them. Undefined: there is too much in them to say.
 */
export async function fingerprint(
  folders: readonly ArchivedFolder[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const { lstat, readdir } = fs.promises;
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256');
  let entries = 0;

  async function walk(folder: ArchivedFolder, below: string): Promise<boolean> {
    const found = await readdir(`${folder.path}/${below}`, { withFileTypes: true }).catch(() => []);
    const kept = found.filter(({ name }) => !folder.excluded.includes(`${below}/${name}`));
    kept.sort((a, b) => (a.name < b.name ? -1 : 1));
    entries += kept.length;
    if (entries > maxEntries) return false;
    signal.throwIfAborted();
    const stats = await Promise.all(
      kept.map(({ name }) => lstat(`${folder.path}/${below}/${name}`, { bigint: true }).catch(() => undefined)),
    );
    for (const [index, entry] of kept.entries()) {
      const path = `${below}/${entry.name}`;
      const stat = stats[index];
      hash.update(`${path}\0${stat?.mode} ${stat?.ino} ${stat?.size} ${stat?.mtimeNs} ${stat?.ctimeNs}\n`);
      if (entry.isDirectory() && !(await walk(folder, path))) return false;
    }
    return true;
  }

  for (const folder of folders) {
    hash.update('\n');
    if (!(await walk(folder, '.'))) return undefined;
  }
  return entries === 0 ? 'empty' : hash.digest('hex');
}
