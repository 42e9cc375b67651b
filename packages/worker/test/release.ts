import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/**
 * Lets waiting fixture agents continue: creates the file `go` in the workspace of each sandbox, for which these agents wait.
 * `stateRoot` is the worker's state folder. Skips sandboxes without a workspace, because they are still being prepared or are ending.
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
