/** Packages of npm that the repository itself does not need, installed from a lockfile of their own. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** `missing`: they cannot be had on this machine, with the reason. */
export type NpmPackages =
  | {
      readonly kind: 'ready';
      /** A copy of the folder that names them, with `node_modules`. */
      readonly folder: string;
      remove(): Promise<void>;
    }
  | { readonly kind: 'missing'; readonly reason: string };

/** Of npm on a loaded machine with a slow registry. */
const installLimitMs = 180_000;

/** npm's codes where what came is not what the lockfile says, or the lockfile is not that of package.json. */
const ownFaults = /EINTEGRITY|EUSAGE/;

/**
 * Copies a folder with `package.json` and `package-lock.json` and installs in the copy what they name, without running a
 * script of a package. Throws where what came is not what the lockfile says.
 */
export async function installNpmPackages(folder: string): Promise<NpmPackages> {
  const target = await mkdtemp(path.join(tmpdir(), 'runyard-npm-'));
  const remove = () => rm(target, { recursive: true, force: true });
  await cp(folder, target, { recursive: true });
  try {
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel', 'error'], {
      cwd: target,
      timeout: installLimitMs,
    });
  } catch (error) {
    await remove();
    const told = String((error as { stderr?: string }).stderr || error);
    if (ownFaults.test(told)) throw error;
    return { kind: 'missing', reason: `npm cannot get them: ${told.trim().split('\n').at(-1)}` };
  }
  return { kind: 'ready', folder: target, remove };
}
