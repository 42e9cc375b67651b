import { chmod, chown, mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { mountImage, unmountBelow, unmountImage } from '../state/disk-image.ts';
import { removeTree } from '../state/remove-tree.ts';

/** Host folders of one sandbox. `top` is passable and not writable for its user, `workspace` and `home` are the user's alone. */
export interface SandboxFolders {
  readonly top: string;
  readonly workspace: string;
  readonly home: string;
}

/** File with the disk of a sandbox, where it has one of its own. */
const imageOf = (stateRoot: string, id: string): string => path.join(stateRoot, 'disks', `${id}.img`);

export interface FolderOptions {
  /** Who owns them where that is not this process's user. */
  readonly uid?: number;
  /** Set: they are on a disk of their own, which the kernel keeps near this size. */
  readonly diskMb?: number;
}

/** Makes the folders. What it made before it fails is removed by `removeFolders`. */
export async function makeFolders(
  stateRoot: string,
  id: string,
  { uid, diskMb }: FolderOptions,
): Promise<SandboxFolders> {
  const top = path.join(stateRoot, 's', id);
  await mkdir(path.dirname(top), { recursive: true, mode: 0o711 });
  await mkdir(top, { mode: 0o711 });
  if (diskMb !== undefined) {
    const image = imageOf(stateRoot, id);
    await mkdir(path.dirname(image), { recursive: true, mode: 0o700 });
    await mountImage(image, top, diskMb);
  }
  const folders = { top, workspace: path.join(top, 'workspace'), home: path.join(top, 'home') };
  await chmod(top, 0o711);
  for (const folder of [folders.workspace, folders.home]) {
    await mkdir(folder, { mode: 0o700 });
    if (uid !== undefined) await chown(folder, uid, uid);
  }
  return folders;
}

/**
 * Removes a sandbox's folders. Renamed first, so the name is free at once.
 */
export async function removeFolders(stateRoot: string, id: string): Promise<void> {
  await unmountImage(imageOf(stateRoot, id), path.join(stateRoot, 's', id));
  const trash = path.join(stateRoot, 'trash');
  await mkdir(trash, { recursive: true, mode: 0o700 });
  const place = path.join(trash, `${id}-${process.hrtime.bigint()}`);
  try {
    await rename(path.join(stateRoot, 's', id), place);
  } catch (error) {
    // They were never made.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  await removeTree(place);
}

/** Removes everything that earlier processes left under the state root. Returns the ids of their sandboxes. */
export async function removeLeftovers(stateRoot: string): Promise<string[]> {
  await unmountBelow(stateRoot);
  const left = await readdir(path.join(stateRoot, 's')).catch(() => []);
  for (const id of left) await removeFolders(stateRoot, id);
  await rm(path.join(stateRoot, 'disks'), { recursive: true, force: true });
  for (const name of await readdir(path.join(stateRoot, 'trash')).catch(() => [])) {
    await removeTree(path.join(stateRoot, 'trash', name));
  }
  return left;
}
