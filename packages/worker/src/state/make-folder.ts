import { mkdir } from 'node:fs/promises';

/**
 * Makes a folder if it does not exist. Does not make the folders above it: the state root of a removed data folder would come back, and
 * no worker removes it, because it has no file that names its owner.
 */
export async function makeFolder(folder: string, mode: number): Promise<void> {
  await mkdir(folder, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}
