import { mkdir } from 'node:fs/promises';

/**
 * Makes a folder if it does not exist. Does not create parent folders, because it could then create the state root of a removed data folder
 * again. Such a state root would not have the file that names its owner, so no worker would remove the state root.
 */
export async function makeFolder(folder: string, mode: number): Promise<void> {
  await mkdir(folder, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}
