import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { unlinkedBytes } from './unlinked-files.ts';

const environment = { PATH: '/usr/bin:/bin', LC_ALL: 'C' };

/**
 * Returns the bytes that the folders take on disk, including deleted files that a process of `pids` still has open. Rejects if a part
 * cannot be counted.
 */
export async function usedInFolders(
  folders: readonly string[],
  pids: () => Promise<readonly number[]>,
  signal: AbortSignal,
): Promise<number> {
  const named = await treeBytes(folders, signal).catch(async () => {
    signal.throwIfAborted();
    // Restores the read permissions of the folders, because an agent that runs as the worker's user may have removed them.
    await command('chmod', ['-R', 'u+rX', '--', ...folders], signal);
    return await treeBytes(folders, signal);
  });
  const devices = new Set((await Promise.all(folders.map((folder) => stat(folder)))).map(({ dev }) => dev));
  return named + (await unlinkedBytes(await pids(), devices, signal));
}

/** Counts with `du`, which does not follow symbolic links and has no limit on path lengths. */
async function treeBytes(folders: readonly string[], signal: AbortSignal): Promise<number> {
  const { stdout, stderr } = await command('du', ['-s', '-c', '-x', '--block-size=1', '--', ...folders], signal);
  // Ignores reports about files that vanished while `du` counted, because the total is still good enough.
  const problem = stderr.split('\n').find((line) => line !== '' && !line.endsWith('No such file or directory'));
  const total = /^(\d+)\ttotal$/m.exec(stdout)?.[1];
  if (problem !== undefined || total === undefined) throw new Error(problem ?? 'du did not end as expected');
  return Number(total);
}

/** Returns the output of the program, whatever the exit code is. Rejects if the program could not be started or was killed. */
function command(
  name: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const options = { env: environment, maxBuffer: 1 << 20, signal, killSignal: 'SIGKILL' as const };
    execFile(name, args, options, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number') reject(error);
      else resolve({ stdout, stderr });
    });
  });
}
