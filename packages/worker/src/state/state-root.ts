import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { unmountBelow } from './disk-image.ts';
import { removeTree } from './remove-tree.ts';

/** The folder in which a worker stores its sandboxes and the agent's bundle. */
export interface StateRoot {
  /** Absolute path of the folder. The users of sandboxes can enter the folder, but cannot list its files. */
  readonly folder: string;
  /** Twelve hex digits that identify the data folder. Everything that the worker creates on the machine is labelled with these digits. */
  readonly owner: string;
  /** Why this folder was chosen, for the log. */
  readonly because: string;
}

/**
 * If a state root is outside of the data folder, this file in it contains the path of the worker folder to which the state root belongs.
 */
const ownerFile = 'state-of';

/**
 * Longest path of a state root. With `/s/0123456789ab/relay.sock` after it, the path must fit into the 107 bytes of a Unix socket
 * address.
 */
const longestRoot = 80;

/**
 * Chooses and creates the folder. If the worker is root, each sandbox has its own user, who must be able to enter every folder above
 * the workspace. If other users cannot enter the data folder, for example because it is in a home folder of mode 0700, the state root
 * is in /var/lib or a temporary folder.
 */
export async function chooseStateRoot(workerFolder: string): Promise<StateRoot> {
  const owner = createHash('sha256').update(workerFolder).digest('hex').slice(0, 12);
  const asRoot = process.getuid?.() === 0;
  const problem = await unsuitable(workerFolder, asRoot);
  if (problem === undefined) {
    const folder = path.join(workerFolder, 'state');
    await chmod(workerFolder, asRoot ? 0o711 : 0o700);
    await makeOwned(folder);
    return { folder, owner, because: 'it is in the data folder' };
  }
  const places = placesElsewhere();
  const refused: string[] = [];
  for (const place of places) {
    const folder = path.join(place, `runyard-${owner}`);
    const why =
      (await unsuitable(place, asRoot)) ??
      (await makeOwned(folder).then(
        () => undefined,
        (error: Error) => error.message,
      ));
    if (why === undefined) {
      // Writes the file under another name and then renames it, so that another worker that removes abandoned state roots never finds an
      // empty file.
      const owned = path.join(folder, ownerFile);
      await writeFile(`${owned}.new`, `${workerFolder}\n`, { mode: 0o600 });
      await rename(`${owned}.new`, owned);
      return { folder, owner, because: problem };
    }
    refused.push(`${place}: ${why}`);
  }
  throw new Error(
    `no folder for the sandboxes: ${problem}; ${refused.join('; ')}. Set RUNYARD_DATA_DIR to a folder that every user can pass through (chmod o+x).`,
  );
}

function placesElsewhere(): string[] {
  const runtimeDir = process.env.XDG_RUNTIME_DIR;
  return [...(process.getuid?.() === 0 ? ['/var/lib'] : []), ...(runtimeDir ? [runtimeDir] : []), os.tmpdir()];
}

/**
 * Removes each state root that is outside of its data folder if this data folder no longer exists. Also removes the remains of the
 * sandboxes of such a state root. Returns the removed folders. Does not touch folders of other users.
 */
export async function removeAbandonedRoots(places: readonly string[] = placesElsewhere()): Promise<string[]> {
  const removed: string[] = [];
  for (const place of places) {
    for (const name of await readdir(place).catch(() => [])) {
      if (!/^runyard-[0-9a-f]{12}$/.test(name)) continue;
      const folder = path.join(place, name);
      const found = await lstat(folder).catch(() => undefined);
      if (!found?.isDirectory() || found.uid !== process.getuid?.()) continue;
      const owner = (await readFile(path.join(folder, ownerFile), 'utf8').catch(() => '')).trim();
      const isAbandoned = owner === '' ? await isRemainder(folder) : await isMissing(owner);
      if (!isAbandoned) continue;
      await unmountBelow(folder);
      await removeTree(folder);
      removed.push(folder);
    }
  }
  return removed;
}

const isMissing = async (file: string): Promise<boolean> =>
  (await stat(file).catch((error: NodeJS.ErrnoException) => error.code)) === 'ENOENT';

/**
 * Returns true if the folder contains nothing except perhaps `trash`, and has not changed for an hour. Such a folder has no file that
 * names its owner, and nobody uses it.
 */
async function isRemainder(folder: string): Promise<boolean> {
  const names = await readdir(folder).catch(() => ['unknown']);
  const found = await stat(folder).catch(() => undefined);
  return names.every((name) => name === 'trash') && found !== undefined && Date.now() - found.mtimeMs > 3_600_000;
}

/** Returns why sandboxes cannot be below this existing folder. Returns `undefined` if they can. */
async function unsuitable(folder: string, asRoot: boolean): Promise<string | undefined> {
  if (Buffer.byteLength(folder) > longestRoot) return `${folder} is too long a path for Unix sockets`;
  if (!asRoot) return undefined;
  const workerFolder = path.basename(folder) === 'worker';
  for (let at = workerFolder ? path.dirname(folder) : folder; ; at = path.dirname(at)) {
    const found = await stat(at).catch(() => undefined);
    if (found === undefined) return `${at} does not exist`;
    if ((found.mode & 0o001) === 0)
      return `${at} does not let other users pass (mode ${(found.mode & 0o777).toString(8)})`;
    if (at === path.dirname(at)) return undefined;
  }
}

/**
 * Creates the folder. Other users can enter it, but cannot list its files. Rejects if the folder exists and belongs to another user,
 * because every user can create a folder in a shared temporary folder.
 */
async function makeOwned(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o711 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${folder} belongs to someone else`);
  await chmod(folder, 0o711);
}
