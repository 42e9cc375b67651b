/**
 * Starts this program a second time in new namespaces, and gives it a folder and the path of an S3 server's program. All processes in
 * these namespaces end with the second program.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { headStartVariable } from '../support/head-start.ts';
import { installPythonPackages } from '../support/python-packages.ts';

const rootVariable = 'CHAOS_ROOT';
const weedVariable = 'CHAOS_WEED';

export interface Place {
  /** Folder that every user can pass through. */
  readonly root: string;
  /** The program of SeaweedFS. */
  readonly weed: string;
}

/**
 * Calls `work` in new network, mount and process namespaces. For this, starts this program again in such namespaces, with the
 * arguments `options`, and exits with the exit code of the second program. If the code is not 0, the folder with the logs is not removed.
 */
export async function startAlone(options: readonly string[], work: (place: Place) => Promise<void>): Promise<void> {
  const { [rootVariable]: root, [weedVariable]: weed } = process.env;
  if (root !== undefined && weed !== undefined) return await work({ root, weed });
  if (process.getuid?.() !== 0) throw new Error('only root can make network namespaces');
  const packages = await installPythonPackages(path.join(import.meta.dirname, '../s3/requirements.txt'), 7);
  if (packages.kind === 'missing') throw new Error(`there is no server of S3: ${packages.reason}`);
  const made = await mkdtemp(path.join(tmpdir(), 'runyard-chaos-'));
  await chmod(made, 0o711);
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  // Let a shell be process 1 instead of the program. Process 1 becomes the parent of every process whose parent has ended, and a shell,
  // unlike Node, removes such a process when it ends.
  const shell = ['sh', '-c', '"$@"; exit $?', 'sh', process.execPath, process.argv[1] ?? '', ...options];
  const child = spawn('unshare', [...namespaces, ...shell], {
    stdio: 'inherit',
    env: {
      ...process.env,
      [rootVariable]: made,
      [weedVariable]: path.join(packages.folder, 'bin/weed'),
      [headStartVariable]: made,
      NODE_COMPILE_CACHE: path.join(made, 'compiled'),
    },
  });
  const [code, signal] = await once(child, 'exit');
  if (code === 0) await rm(made, { recursive: true, force: true });
  else process.stderr.write(`${signal ?? `exit code ${code}`}; the logs are in ${path.join(made, 'logs')}\n`);
  await packages.remove();
  process.exitCode = code ?? 1;
  return undefined;
}
