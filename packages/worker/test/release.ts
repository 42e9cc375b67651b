import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Creates the file `go` in the workspace of each sandbox. The agents of a test wait for this file. `stateRoot` is the worker's state
 * folder. Skips sandboxes without a workspace: the pool is still preparing them, or they are ending.
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
