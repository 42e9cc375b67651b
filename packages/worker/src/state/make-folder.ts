import { mkdir } from 'node:fs/promises';

/**
 * Makes a folder if it does not exist. Does not create parent folders. Otherwise it could create the state root of a removed data folder
 * again, without the file that names its owner. No worker would remove such a state root.
 */
export async function makeFolder(folder: string, mode: number): Promise<void> {
  await mkdir(folder, { mode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}
