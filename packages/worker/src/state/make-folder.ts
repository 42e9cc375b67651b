import { mkdir } from 'node:fs/promises';

/**
 * Makes a folder if it does not exist. Does not create its parent folders: otherwise the state root of a removed data folder would be
 * created again, and no worker would remove it, because it has no file with the name of its owner.
 */
export async function makeFolder(folder: string, mode: number): Promise<void> {
  await mkdir(folder, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}
