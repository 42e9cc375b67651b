import { type BigIntStats, promises as fs } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';

/** Finds changes of the workspace in a turn with the mode `plan`. */
export interface PlanGuard {
  /** Marks the present state of the workspace as the state that must not change. */
  begin(): Promise<void>;
  /** Returns the path of something that changed since `begin`, relative to the workspace; undefined: nothing changed. */
  findChange(): Promise<string | undefined>;
}

/** Number of entries that are looked at together. */
const atOnce = 64;

/** Parts of a git repository that record work. Git also writes other parts, such as the index, when it only reads. */
const gitWork = /^(HEAD|config|packed-refs|hooks(\/.*)?|refs\/(heads|tags)(\/.*)?|refs\/stash)$/;

/**
 * Compares the kernel's change times (ctime), which no program can set. A new, removed or renamed entry changes the time of its folder.
 * The folder `attachments` is not looked at, because the agent writes the files of answers there.
 */
export function planGuard(workspace: string, home: string | undefined): PlanGuard {
  const ignored = new Set([join(workspace, 'attachments'), ...(home === undefined ? [] : [home])]);
  let since: bigint | undefined;

  async function changedIn(folder: string, mark: bigint): Promise<string | undefined> {
    const entries = await fs.readdir(folder, { withFileTypes: true }).catch(() => []);
    const folders: [path: string, way: 'whole' | 'inside'][] = [];
    for (let from = 0; from < entries.length; from += atOnce) {
      const found = await Promise.all(
        entries.slice(from, from + atOnce).map(async (entry) => {
          const path = join(folder, entry.name);
          const way = wayIn(path);
          if (ignored.has(path) || way === 'none') return undefined;
          if (entry.isDirectory()) folders.push([path, way]);
          else if (way === 'whole' && (await isNewer(path, mark))) return path;
          return undefined;
        }),
      );
      const first = found.find((path) => path !== undefined);
      if (first !== undefined) return first;
    }
    for (const [path, way] of folders) {
      const changed = await changedIn(path, mark);
      if (changed !== undefined) return changed;
      // Entries come first, because they say more about the change than their folder.
      if (way === 'whole' && (await isNewer(path, mark))) return path;
    }
    return undefined;
  }

  return {
    async begin() {
      const file = await fs.mkdtemp(join(tmpdir(), 'runyard-plan-'));
      since = (await fs.lstat(file, { bigint: true })).ctimeNs;
      await fs.rmdir(file);
    },
    async findChange() {
      if (since === undefined) return undefined;
      const changed =
        (await changedIn(workspace, since)) ?? ((await isNewer(workspace, since)) ? workspace : undefined);
      return changed === undefined ? undefined : relative(workspace, changed) || 'an entry at the top of the workspace';
    },
  };
}

/** Returns whether an entry itself is looked at (`whole`), or only entries below it (`inside`), or nothing (`none`). */
function wayIn(path: string): 'whole' | 'inside' | 'none' {
  const parts = path.split(sep);
  const git = parts.lastIndexOf('.git');
  if (git < 0) return 'whole';
  const below = parts.slice(git + 1).join('/');
  if (gitWork.test(below)) return 'whole';
  return below === '' || below === 'refs' || below === 'modules' || below.startsWith('modules/') ? 'inside' : 'none';
}

async function isNewer(path: string, mark: bigint): Promise<boolean> {
  const stats: BigIntStats | undefined = await fs.lstat(path, { bigint: true }).catch(() => undefined);
  return stats !== undefined && stats.ctimeNs > mark;
}
