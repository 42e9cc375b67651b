import { chmod, chown, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { mountImage, unmountBelow, unmountImage } from '../state/disk-image.ts';
import { makeFolder } from '../state/make-folder.ts';
import { removeTree } from '../state/remove-tree.ts';
import { sandboxPlaces } from '../state/sandbox-places.ts';

/**
 * Folders of the machine for one sandbox. `top` contains `workspace` and `home`. The user of the sandbox owns `workspace` and `home`, and
 * can enter `top`, but cannot write to it.
 */
export interface SandboxFolders {
  readonly top: string;
  readonly workspace: string;
  readonly home: string;
  readonly system: string;
}

export interface FolderOptions {
  /** Owner of the folders. Default: the user of this process. */
  readonly uid?: number;
  /** If set, the folders are on their own disk image of about this size. */
  readonly diskMb?: number;
}

/** Makes the folders. If this fails, the caller must call `removeFolders` for the folders that were already created. */
export async function makeFolders(
  stateRoot: string,
  id: string,
  { uid, diskMb }: FolderOptions,
): Promise<SandboxFolders> {
  const { image, ...folders } = sandboxPlaces(stateRoot, id);
  const { top } = folders;
  await makeFolder(path.dirname(top), 0o711);
  await mkdir(top, { mode: 0o711 });
  if (diskMb !== undefined) {
    await makeFolder(path.dirname(image), 0o700);
    await mountImage(image, top, diskMb);
  }
  await chmod(top, 0o711);
  for (const folder of [folders.workspace, folders.home]) {
    await mkdir(folder, { mode: 0o700 });
    if (uid !== undefined) await chown(folder, uid, uid);
  }
  return folders;
}

/**
 * Removes the folders of a sandbox. Moves them into `trash` first, so that the path is free at once. Does nothing if the state root no
 * longer exists.
 */
export async function removeFolders(stateRoot: string, id: string): Promise<void> {
  const { image, top } = sandboxPlaces(stateRoot, id);
  await unmountImage(image, top);
  const trash = path.join(stateRoot, 'trash');
  const place = path.join(trash, `${id}-${process.hrtime.bigint()}`);
  try {
    await makeFolder(trash, 0o700);
    await rename(top, place);
  } catch (error) {
    // The folders were never made, or the state root was removed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await removeTree(place);
}

/**
 * Removes everything that earlier processes left under the state root, except the sandboxes with the ids of `kept`.
 * Returns the ids of the removed folders.
 */
export async function removeLeftovers(stateRoot: string, kept: ReadonlySet<string> = new Set()): Promise<string[]> {
  const parent = path.join(stateRoot, 's');
  await unmountBelow(stateRoot, new Set([...kept].map((id) => path.join(parent, id))));
  const left = (await readdir(parent).catch(() => [])).filter((id) => !kept.has(id));
  for (const id of left) await removeFolders(stateRoot, id);
  const images = new Set([...kept].map((id) => path.basename(sandboxPlaces(stateRoot, id).image)));
  for (const image of await readdir(path.join(stateRoot, 'disks')).catch(() => []))
    if (!images.has(image)) await rm(path.join(stateRoot, 'disks', image), { force: true });
  for (const name of await readdir(path.join(stateRoot, 'trash')).catch(() => [])) {
    await removeTree(path.join(stateRoot, 'trash', name));
  }
  return left;
}
