import { fs } from '../builtin-modules.ts';
import type { ArchivedFolder } from './archived-folders.ts';

/** With more entries, reading their states costs as much as packing them. */
const maxEntries = 5_000;

/**
 * Returns a hash of the state of the folders without reading files: names, kinds, sizes and times. Programs cannot set the change time
 * back. `empty`: the folders are empty. Undefined: they have too many entries.
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
