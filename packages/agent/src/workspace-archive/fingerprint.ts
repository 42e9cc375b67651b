import { fs } from '../builtin-modules.ts';
import type { ArchivedFolder } from './archived-folders.ts';

/**
 * Maximum number of entries in the folders. Reading the states of so many entries takes about three seconds. Folders with more entries
 * always count as changed.
 */
const maxEntries = 500_000;

/** Number of entries that are read before other work of the agent may run. */
const entriesAtOnce = 2_000;

/**
 * Returns a hash of the names, kinds, sizes and times in the folders, without reading files. The times include the change time, which
 * programs cannot set back. Returns `empty` if the folders are empty, and undefined if they have too many entries. Reads synchronously,
 * because reading with promises needs ten times the processor time.
 */
export async function fingerprint(
  folders: readonly ArchivedFolder[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256');
  let entries = 0;
  let sincePause = 0;

  async function walk(folder: ArchivedFolder, below: string): Promise<boolean> {
    const found = entriesOf(`${folder.path}/${below}`);
    const included = found.filter(({ name }) => !folder.excluded.includes(`${below}/${name}`));
    included.sort((a, b) => (a.name < b.name ? -1 : 1));
    entries += included.length;
    if (entries > maxEntries) return false;
    for (const entry of included) {
      const path = `${below}/${entry.name}`;
      const stat = stateOf(`${folder.path}/${path}`);
      hash.update(`${path}\0${stat?.mode} ${stat?.ino} ${stat?.size} ${stat?.mtimeNs} ${stat?.ctimeNs}\n`);
      sincePause += 1;
      if (sincePause >= entriesAtOnce) {
        sincePause = 0;
        await new Promise(setImmediate);
        signal.throwIfAborted();
      }
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

/** Returns the entries of a folder; an empty list if the folder cannot be read. */
function entriesOf(folder: string) {
  try {
    return fs.readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function stateOf(path: string) {
  try {
    return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
