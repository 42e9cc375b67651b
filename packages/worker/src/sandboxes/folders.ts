import { chmod, chown, mkdir, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { removeTree } from '../state/remove-tree.ts';

/** Host folders of one sandbox. `top` is passable and not writable for its user, `workspace` and `home` are the user's alone. */
export interface SandboxFolders {
  readonly top: string;
  readonly workspace: string;
  readonly home: string;
}

/** Makes the folders; `uid` is who owns them where that is not this process's user. */
export async function makeFolders(stateRoot: string, id: string, uid: number | undefined): Promise<SandboxFolders> {
  const top = path.join(stateRoot, 's', id);
  await mkdir(path.dirname(top), { recursive: true, mode: 0o711 });
  await mkdir(top, { mode: 0o711 });
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
  const trash = path.join(stateRoot, 'trash');
  await mkdir(trash, { recursive: true, mode: 0o700 });
  const place = path.join(trash, `${id}-${process.hrtime.bigint()}`);
  await rename(path.join(stateRoot, 's', id), place);
  await removeTree(place);
}

/** Removes everything that earlier processes left under the state root. Returns the ids of their sandboxes. */
export async function removeLeftovers(stateRoot: string): Promise<string[]> {
  const left = await readdir(path.join(stateRoot, 's')).catch(() => []);
  for (const id of left) await removeFolders(stateRoot, id);
  for (const name of await readdir(path.join(stateRoot, 'trash')).catch(() => [])) {
    await removeTree(path.join(stateRoot, 'trash', name));
  }
  return left;
}
