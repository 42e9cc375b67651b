/** Installs Python packages with pip from the registry that the settings of the machine name. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type KeptPackages, keepPackages } from './kept-packages.ts';

const run = promisify(execFile);
/** With `missing`, the packages cannot be installed on this machine for this reason. */
export type PythonPackages =
  | {
      readonly kind: 'ready';
      /** Folder of the packages. Do not change it, because other test runs also use it. */
      readonly folder: string;
      /** Runs python3 with these arguments and returns its standard output. */
      start(args: readonly string[], options?: StartOptions): Promise<string>;
      remove(): Promise<void>;
    }
  | { readonly kind: 'missing'; readonly reason: string };

interface StartOptions {
  /** Time after which the program is killed. Default: 580 seconds. */
  readonly limitMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Time limit of pip on a loaded machine with a slow registry. */
const installLimitMs = 300_000;
const startLimitMs = 580_000;

const missing = (reason: string): PythonPackages => ({ kind: 'missing', reason });
const lastLine = (error: unknown): string =>
  String((error as { stderr?: string }).stderr || error)
    .trim()
    .split('\n')
    .at(-1) ?? '';

/**
 * Returns the command of pip: Python's own pip, or else the pip of a new virtual environment, which Debian has in a separate package.
 */
async function findPip(target: string): Promise<readonly [string, ...string[]] | undefined> {
  const own = ['python3', '-m', 'pip'] as const;
  if (await succeeds(...own, '--version')) return own;
  const made = await succeeds('python3', '-m', 'venv', path.join(target, 'venv'));
  return made ? [path.join(target, 'venv/bin/python3'), '-m', 'pip'] : undefined;
}

/**
 * Returns a Python program that prints the version and platform of Python, on which the choice of wheels depends. The program fails if
 * Python is too old.
 */
const describePython = (minor: number): string =>
  `import sys, sysconfig; assert sys.version_info >= (3, ${minor}); print(sys.version, sysconfig.get_platform())`;

const succeeds = async (command: string, ...args: string[]): Promise<boolean> =>
  await run(command, args, { timeout: installLimitMs }).then(
    () => true,
    () => false,
  );

/**
 * Installs the packages of a requirements file in a folder of their own and checks their hashes. `minor` is the minor version of the
 * oldest supported Python 3. Throws if the content differs from the hashes.
 */
export async function installPythonPackages(requirements: string, minor: number): Promise<PythonPackages> {
  const described = await run('python3', ['-c', describePython(minor)]).catch(() => undefined);
  if (!described) return missing(`there is no python3 of 3.${minor} or newer`);
  const inputs = ['python', described.stdout, await readFile(requirements, 'utf8')];
  let kept: KeptPackages;
  try {
    kept = await keepPackages(inputs, (folder) => installInto(folder, requirements));
  } catch (error) {
    if (String((error as { stderr?: string }).stderr).includes('DO NOT MATCH THE HASHES')) throw error;
    return missing(`pip cannot get them: ${lastLine(error)}`);
  }
  return {
    kind: 'ready',
    folder: path.join(kept.folder, 'packages'),
    start: async (args, { limitMs = startLimitMs, env, cwd } = {}) => {
      const { stdout } = await run('python3', [...args], {
        // Pass no other variables of the machine: with its proxy variables, programs would use the proxy for the service on loopback.
        env: {
          PATH: process.env.PATH ?? '',
          PYTHONPATH: path.join(kept.folder, 'packages'),
          // Folder for compiled modules, which the next run uses. Otherwise Python would write them beside our own files.
          PYTHONPYCACHEPREFIX: path.join(kept.folder, 'compiled'),
          // Hypothesis, a part of Schemathesis, also stores its tables of characters there.
          HYPOTHESIS_STORAGE_DIRECTORY: path.join(kept.folder, 'hypothesis'),
          ...env,
        },
        cwd,
        timeout: limitMs,
        killSignal: 'SIGKILL',
        maxBuffer: 16 * 1024 * 1024,
      });
      return stdout;
    },
    remove: kept.remove,
  };
}

async function installInto(folder: string, requirements: string): Promise<void> {
  const pip = await findPip(folder);
  if (!pip) throw new Error('python3 has neither pip nor venv (Debian: python3-venv)');
  const [command, ...args] = [
    ...pip,
    ...['install', '--quiet', '--no-input', '--disable-pip-version-check', '--no-compile', '--retries', '2'],
    // Allow only wheels, because building a package would run its code and need build tools.
    ...['--only-binary', ':all:', '--require-hashes', '--no-deps', '--target', path.join(folder, 'packages')],
    ...['--requirement', requirements],
  ];
  await run(command, args, { timeout: installLimitMs });
  await rm(path.join(folder, 'venv'), { recursive: true, force: true });
}
