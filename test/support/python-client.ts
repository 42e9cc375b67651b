/** The published Python client, installed as its users install it: by pip, from the registry of the machine. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = path.resolve(import.meta.dirname, '../python-client');

/** `missing`: it cannot be had on this machine, with the reason. */
export type PythonClient =
  | {
      readonly kind: 'ready';
      /** Standard output of a file of `test/python-client`. */
      start(file: string, env: Readonly<Record<string, string>>): Promise<string>;
      remove(): Promise<void>;
    }
  | { readonly kind: 'missing'; readonly reason: string };

/** Of pip on a loaded machine with a slow registry. */
const installLimitMs = 120_000;
const startLimitMs = 120_000;

const missing = (reason: string): PythonClient => ({ kind: 'missing', reason });
const lastLine = (error: unknown): string =>
  String((error as { stderr?: string }).stderr || error)
    .trim()
    .split('\n')
    .at(-1) ?? '';

/** The command of a pip: Python's own, else that of a virtual environment, which Debian has in a package of its own. */
async function findPip(target: string): Promise<readonly [string, ...string[]] | undefined> {
  const own = ['python3', '-m', 'pip'] as const;
  if (await succeeds(...own, '--version')) return own;
  const made = await succeeds('python3', '-m', 'venv', path.join(target, 'venv'));
  return made ? [path.join(target, 'venv/bin/python3'), '-m', 'pip'] : undefined;
}

const succeeds = async (command: string, ...args: string[]): Promise<boolean> =>
  await run(command, args, { timeout: installLimitMs }).then(
    () => true,
    () => false,
  );

/** Installs it with its checked hashes in a folder of its own. Throws where what came is not what the hashes say. */
export async function installPythonClient(): Promise<PythonClient> {
  if (!(await succeeds('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 10))')))
    return missing('there is no python3 of 3.10 or newer');
  const target = await mkdtemp(path.join(tmpdir(), 'runyard-python-'));
  const remove = () => rm(target, { recursive: true, force: true });
  const pip = await findPip(target);
  if (!pip) {
    await remove();
    return missing('python3 has neither pip nor venv (Debian: python3-venv)');
  }
  const packages = path.join(target, 'packages');
  const [command, ...args] = [
    ...pip,
    ...['install', '--quiet', '--no-input', '--disable-pip-version-check', '--no-compile', '--retries', '2'],
    // Wheels only: building a package would run its code, and need its tools.
    ...['--only-binary', ':all:', '--require-hashes', '--no-deps', '--target', packages],
    ...['--requirement', path.join(folder, 'requirements.txt')],
  ];
  try {
    await run(command, args, { timeout: installLimitMs });
  } catch (error) {
    await remove();
    if (String((error as { stderr?: string }).stderr).includes('DO NOT MATCH THE HASHES')) throw error;
    return missing(`pip cannot get it: ${lastLine(error)}`);
  }
  return {
    kind: 'ready',
    start: async (file, env) => {
      const { stdout } = await run('python3', [path.join(folder, file)], {
        // Of the machine's environment nothing else: a proxy would be asked for the service on loopback.
        env: { PATH: process.env.PATH ?? '', PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: '1', ...env },
        timeout: startLimitMs,
        killSignal: 'SIGKILL',
        maxBuffer: 16 * 1024 * 1024,
      });
      return stdout;
    },
    remove,
  };
}
