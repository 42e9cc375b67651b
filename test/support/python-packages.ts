/** Python packages that pip installs from the machine's registry, in the same way as users do. */
import { execFile } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type KeptPackages, keepPackages } from './kept-packages.ts';

const run = promisify(execFile);
/** `missing`: they cannot be installed on this machine, with the reason. */
export type PythonPackages =
  | {
      readonly kind: 'ready';
      /** The packages. Only read it, because other test runs use it. */
      readonly folder: string;
      /** Runs python3 with these arguments; gives its standard output. */
      start(args: readonly string[], options?: StartOptions): Promise<string>;
      remove(): Promise<void>;
    }
  | { readonly kind: 'missing'; readonly reason: string };

interface StartOptions {
  /** After that the program is killed. Default: 580 seconds. */
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
 * The command of a pip: Uses Python's own pip, or else the pip of a virtual environment, for which Debian has a
 * separate package.
 */
async function findPip(target: string): Promise<readonly [string, ...string[]] | undefined> {
  const own = ['python3', '-m', 'pip'] as const;
  if (await succeeds(...own, '--version')) return own;
  const made = await succeeds('python3', '-m', 'venv', path.join(target, 'venv'));
  return made ? [path.join(target, 'venv/bin/python3'), '-m', 'pip'] : undefined;
}

/** Prints the version of Python and its platform, which decide on the wheels; fails where Python is too old. */
const describePython = (minor: number): string =>
  `import sys, sysconfig; assert sys.version_info >= (3, ${minor}); print(sys.version, sysconfig.get_platform())`;

const succeeds = async (command: string, ...args: string[]): Promise<boolean> =>
  await run(command, args, { timeout: installLimitMs }).then(
    () => true,
    () => false,
  );

/**
 * Installs the packages of a requirements file with their checked hashes in a folder of their own. `minor`: of the oldest supported
 * Python 3. Throws if the content differs from the hashes.
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
        // No other variables of the machine, because a proxy would be used for the service on loopback.
        env: {
          PATH: process.env.PATH ?? '',
          PYTHONPATH: path.join(kept.folder, 'packages'),
          // Compiled modules, for the next run: not beside our own files.
          PYTHONPYCACHEPREFIX: path.join(kept.folder, 'compiled'),
          // The same for the tables of characters that Hypothesis makes, which Schemathesis uses.
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
    // Wheels only: building a package would run its code, and need its tools.
    ...['--only-binary', ':all:', '--require-hashes', '--no-deps', '--target', path.join(folder, 'packages')],
    ...['--requirement', requirements],
  ];
  await run(command, args, { timeout: installLimitMs });
  await rm(path.join(folder, 'venv'), { recursive: true, force: true });
}
