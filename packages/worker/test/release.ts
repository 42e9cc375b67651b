import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Creates the file `go` in the workspace of each sandbox, for which agents of a test wait. `stateRoot` is the worker's state folder. A
 * sandbox that the pool is just preparing has no workspace yet, and one that it ends has none any more.
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
