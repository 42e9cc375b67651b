/** Installs npm packages that the repository itself does not need, from a separate lockfile. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type KeptPackages, keepPackages } from './kept-packages.ts';

const run = promisify(execFile);

/** With `missing`, the packages cannot be installed on this machine for this reason. */
export type NpmPackages =
  | {
      readonly kind: 'ready';
      /** A copy of the given folder, with the packages in `node_modules`. */
      readonly folder: string;
      remove(): Promise<void>;
    }
  | { readonly kind: 'missing'; readonly reason: string };

/** Time limit of npm on a loaded machine with a slow registry. */
const installLimitMs = 180_000;

/**
 * npm's error codes for a package whose content does not fit the lockfile, and for a lockfile that does not fit package.json. These
 * are faults of the repository.
 */
const ownFaults = /EINTEGRITY|EUSAGE/;

/**
 * Returns the line of npm's error output that gives the reason. This line is between the lines with the error code and the line with
 * the path of the log.
 */
function reasonOf(told: string): string {
  const lines = told.trim().split('\n');
  return (
    lines.find((line) => line.startsWith('npm error') && !/^npm error (code|errno) /.test(line)) ?? lines.at(-1) ?? ''
  );
}

/**
 * Copies a folder with `package.json` and `package-lock.json`, and installs in the copy the packages that they name, without running a
 * script of a package. Throws if the content differs from the lockfile.
 */
export async function installNpmPackages(folder: string): Promise<NpmPackages> {
  const manifests = ['package.json', 'package-lock.json'];
  const contents = await Promise.all(manifests.map((name) => readFile(path.join(folder, name), 'utf8')));
  let packages: KeptPackages;
  try {
    packages = await keepPackages(['npm', process.version, process.arch, ...contents], async (cwd) => {
      for (const name of manifests) await cp(path.join(folder, name), path.join(cwd, name));
      await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'], {
        cwd,
        timeout: installLimitMs,
      });
    });
  } catch (error) {
    const told = String((error as { stderr?: string }).stderr || error);
    if (ownFaults.test(told)) throw error;
    return { kind: 'missing', reason: `npm cannot get them: ${reasonOf(told)}` };
  }
  const target = await mkdtemp(path.join(tmpdir(), 'runyard-npm-'));
  await cp(folder, target, { recursive: true });
  // Do not use a symbolic link, because a generator looks for tsconfig.json in the folders above its real path.
  const copy = (...flags: string[]) => run('cp', ['-a', ...flags, path.join(packages.folder, 'node_modules'), target]);
  // Make hard links if both folders are on one file system.
  await copy('-l').catch(() => copy());
  return {
    kind: 'ready',
    folder: target,
    remove: async () => {
      await rm(target, { recursive: true, force: true });
      await packages.remove();
    },
  };
}
