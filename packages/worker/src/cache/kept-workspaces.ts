import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rename, stat, statfs, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { copyDisk, DamagedCopy, useDiskCopy } from '../state/disk-copies.ts';
import { usedOnFileSystem } from '../state/disk-image.ts';
import { makeFolder } from '../state/make-folder.ts';
import { removeTree } from '../state/remove-tree.ts';
import { type SandboxPlaces, sandboxPlaces, writableFolders } from '../state/sandbox-places.ts';
import { type Budget, longestMs } from './budget.ts';

/** `too_large`: there is no room, and `reason` says why. `in_use`: a process of the sandbox has a file open for writing. */
export type KeepOutcome =
  | { readonly type: 'kept'; readonly bytes: number }
  | { readonly type: 'too_large'; readonly reason: string }
  | { readonly type: 'in_use' };

/**
 * The workspaces and homes of sandboxes that agents keep on this machine for later runs. They are copied as they are, and the worker
 * neither reads their files nor runs programs on them. The name of a kept workspace is a secret, like the names of the `Cache`.
 */
export interface KeptWorkspaces {
  find(name: string): Promise<{ readonly bytes: number } | undefined>;
  /** Keeps a copy of the workspace and home of a running sandbox. Rejects if they cannot be copied, and then keeps nothing. */
  keep(name: string, sandbox: string): Promise<KeepOutcome>;
  /** Gives a running sandbox, whose workspace and home are empty, its own copy. Returns false if there is no usable copy. */
  use(name: string, sandbox: string): Promise<boolean>;
}

/** Copies folders for workers that are not root, and so have no disks for sandboxes. */
export interface FolderCopies {
  /** Returns the bytes that the folders take on the disk. */
  measure(folders: readonly string[]): Promise<number>;
  /** Replaces the contents of the folders `names` in `to` by copies of their contents in `from`. */
  copy(from: string, to: string, names: readonly string[]): Promise<void>;
}

export interface KeptWorkspacesOptions {
  /** The folder must be on the file system of the sandboxes, because file systems clone files only within themselves. */
  readonly stateRoot: string;
  readonly budget: Budget;
  readonly folders: FolderCopies;
  /** Returns the current Unix time in milliseconds. */
  readonly now?: () => number;
}

/** One kept workspace may use at most half of the cache, so that it cannot displace all others. */
const largestPart = 2;
/** Part of the machine's disk that stays free. */
const freePart = 0.05;

/** The worker's record of a kept workspace. */
interface About {
  /** `disk`: a disk image. `folders`: the folders `workspace` and `home`. */
  readonly kind: 'disk' | 'folders';
  /** Bytes on the disk. */
  readonly bytes: number;
  /** Length of the disk image; 0 for folders. */
  readonly length: number;
  /** Unix time in milliseconds. */
  readonly keptAt: number;
  /**
   * The start of the machine in which the copy was made. The files of a copy are not forced to the disk, so after a crash of the machine
   * they may be incomplete.
   */
  readonly boot: string;
}

/** Returns the length of the sandbox's disk image; 0 if the sandbox has no disk. */
async function lengthOf({ image }: SandboxPlaces): Promise<number> {
  return (await stat(image).catch(() => undefined))?.size ?? 0;
}

/** Returns the reason if there is no room for a copy of this size. Called before the copy begins, because a large copy takes long. */
async function whyNoRoom(
  { budget, stateRoot }: Pick<KeptWorkspacesOptions, 'budget' | 'stateRoot'>,
  bytes: number,
): Promise<string | undefined> {
  const most = budget.maxBytes / largestPart;
  const mb = (count: number): string => `${Math.ceil(count / 2 ** 20)} MB`;
  if (bytes > most)
    return `it has ${mb(bytes)}, and one workspace may have ${mb(most)}, half of RUNYARD_WORKER_CACHE_MB`;
  const { bavail, blocks, bsize } = await statfs(stateRoot);
  const free = Math.max(0, (bavail - blocks * freePart) * bsize);
  return bytes > free ? `it has ${mb(bytes)}, and the worker's disk has room for ${mb(free)}` : undefined;
}

/**
 * Opens the kept workspaces and removes the incomplete ones of an earlier process. The caller holds the lock of the data folder. A copy is
 * complete before it gets its name.
 */
export async function openKeptWorkspaces(options: KeptWorkspacesOptions): Promise<KeptWorkspaces> {
  const { stateRoot, budget, folders, now = Date.now } = options;
  const [parent, trash] = [path.join(stateRoot, 'kept'), path.join(stateRoot, 'trash')];
  for (const folder of [parent, trash]) await makeFolder(folder, 0o700);
  const boot = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  /** The uses of each kept workspace. It is removed only after they have ended, because a copy of half of it would look whole. */
  const uses = new Map<string, Set<Promise<unknown>>>();

  const placeInTrash = (): string => path.join(trash, `kept-${randomBytes(8).toString('hex')}`);
  const keyOf = (name: string): string => `workspace-${createHash('sha256').update(name).digest('hex')}`;

  /** Moves the copy into the trash at once, and removes it when its uses have ended. */
  const remove = async (key: string): Promise<void> => {
    const place = placeInTrash();
    const current = [...(uses.get(key) ?? [])];
    uses.delete(key);
    await rename(path.join(parent, key), place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await Promise.allSettled(current);
    await removeTree(place);
  };
  const count = (key: string, { bytes }: About, usedAt: number): void =>
    budget.add(key, { bytes, usedAt, remove: () => remove(key) });

  const aboutOf = async (key: string): Promise<About | undefined> => {
    const text = await readFile(path.join(parent, key, 'about.json'), 'utf8').catch(() => '{}');
    const about: About = JSON.parse(text);
    const isUsable = about.boot === boot && now() - about.keptAt < longestMs;
    if (!isUsable) return undefined;
    if (about.kind === 'folders') return about;
    const found = await stat(path.join(parent, key, 'disk')).catch(() => undefined);
    return found?.size === about.length ? about : undefined;
  };

  for (const key of await readdir(parent)) {
    const about = /^workspace-[0-9a-f]{64}$/.test(key) ? await aboutOf(key).catch(() => undefined) : undefined;
    const found = await stat(path.join(parent, key, 'about.json')).catch(() => undefined);
    if (about === undefined || found === undefined) await removeTree(path.join(parent, key));
    else count(key, about, found.mtimeMs);
  }
  await budget.reserve(0);

  /** Returns the kept workspace of a name, and forgets an unusable one. */
  const lookUp = async (key: string): Promise<About | undefined> => {
    if (budget.get(key) === undefined) return undefined;
    const about = await aboutOf(key).catch(() => undefined);
    if (about === undefined) await budget.forget(key);
    return about;
  };

  const use = async (key: string, { kind, length }: About, sandbox: string): Promise<void> => {
    const to = sandboxPlaces(stateRoot, sandbox);
    if ((await lengthOf(to)) !== length) throw new DamagedCopy('the sandbox has a disk of another size');
    if (kind === 'folders') return await folders.copy(path.join(parent, key), to.top, await writableFolders(to.top));
    const place = placeInTrash();
    await mkdir(place, { mode: 0o700 });
    try {
      await useDiskCopy(path.join(parent, key, 'disk'), to, place);
    } finally {
      await removeTree(place);
    }
  };

  return {
    async find(name) {
      const about = await lookUp(keyOf(name));
      return about && { bytes: about.bytes };
    },

    async keep(name, sandbox) {
      const key = keyOf(name);
      const of = sandboxPlaces(stateRoot, sandbox);
      const length = await lengthOf(of);
      const names = await writableFolders(of.top);
      const kind = length === 0 ? 'folders' : 'disk';
      const expected =
        kind === 'disk'
          ? await usedOnFileSystem(of.top)
          : await folders.measure(names.map((name) => path.join(of.top, name)));
      const reason = await whyNoRoom(options, expected);
      if (reason !== undefined) return { type: 'too_large', reason };
      if (!(await budget.reserve(expected)))
        return {
          type: 'too_large',
          reason: 'other runs are keeping their workspaces now, and use the rest of RUNYARD_WORKER_CACHE_MB',
        };
      const place = placeInTrash();
      try {
        await mkdir(place, { mode: 0o700 });
        if (kind === 'folders') {
          for (const name of names) await mkdir(path.join(place, name), { mode: 0o700, recursive: true });
          await folders.copy(of.top, place, names);
        } else if ((await copyDisk(of, path.join(place, 'disk'))) === 'in_use') return { type: 'in_use' };
        const bytes = kind === 'disk' ? (await stat(path.join(place, 'disk'))).blocks * 512 : expected;
        const about: About = { kind, bytes, length, keptAt: now(), boot };
        await writeFile(path.join(place, 'about.json'), JSON.stringify(about), { mode: 0o600 });
        await budget.forget(key);
        await rename(place, path.join(parent, key));
        count(key, about, now());
        return { type: 'kept', bytes };
      } finally {
        budget.release(expected);
        await removeTree(place).catch(() => {});
      }
    },

    async use(name, sandbox) {
      const key = keyOf(name);
      const about = await lookUp(key);
      const counted = budget.get(key);
      if (about === undefined || counted === undefined) return false;
      const time = now();
      counted.usedAt = time;
      await utimes(path.join(parent, key, 'about.json'), time / 1000, time / 1000).catch(() => {});
      const using = use(key, about, sandbox);
      const all = uses.get(key) ?? new Set();
      uses.set(key, all.add(using));
      try {
        await using;
        return true;
      } catch (error) {
        if (!(error instanceof DamagedCopy)) throw error;
        all.delete(using);
        if (budget.get(key) === counted) await budget.forget(key);
        return false;
      } finally {
        all.delete(using);
      }
    },
  };
}
