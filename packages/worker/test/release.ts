import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Creates the file `go` in the workspace of each sandbox; agents of a test wait for this file. `stateRoot` is the worker's state folder. A
 * sandbox that the pool is preparing has no workspace yet, and an ending sandbox has none any more.
 */
export async function releaseAgents(stateRoot: string): Promise<void> {
  const sandboxes = path.join(stateRoot, 's');
  for (const folder of await readdir(sandboxes)) {
    const workspace = path.join(sandboxes, folder, 'workspace');
    await writeFile(path.join(workspace, 'go'), '').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}
