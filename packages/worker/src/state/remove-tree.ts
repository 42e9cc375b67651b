import { execFile } from 'node:child_process';
import { rmdir } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Removes a folder with all its contents. Uses the program `rm`, because it safely removes symbolic links and trees whose paths are
 * too long for system calls. An agent can leave both. If the folder is empty, starts no program.
 */
export async function removeTree(folder: string): Promise<void> {
  const isRemoved = await rmdir(folder).then(
    () => true,
    () => false,
  );
  if (isRemoved) return;
  const options = { env: { PATH: '/usr/bin:/bin' } };
  // An agent under the worker's own user may have removed the write permission of its folders.
  if (process.getuid?.() !== 0) await run('chmod', ['-R', 'u+rwX', '--', folder], options).catch(() => {});
  await run('rm', ['-rf', '--one-file-system', '--', folder], options);
}
