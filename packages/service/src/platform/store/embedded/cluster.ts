/**
 * Creates the data files of PostgreSQL, which it calls a "cluster". The cluster is created in a temporary folder, which is then
 * renamed, so an incomplete cluster is never used as a database. Every PostgreSQL program is started with the cluster as its working
 * directory and gets the path `/proc/self/cwd` for the data. The kernel enters the working directory before the process gives up
 * root's rights. So the server's account does not need access to the parent folders, for example in a project below /root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { syncFolder } from '../blobs/sync-folder.ts';
import { type Account, runAs } from './account.ts';
import { embeddedMajor } from './binaries.ts';
import { startGuard } from './guard.ts';

export const hereFolder = '/proc/self/cwd';
export const superuser = 'runyard';

const initOptions = [
  '--username=runyard',
  // No password is needed: the server listens only on its Unix socket, and the permissions of the socket's folder control who can connect.
  '--auth=trust',
  '--encoding=UTF8',
  '--locale=C',
  // The server sorts text by code point on every machine, because the order of an index must not change with the system's C library.
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--no-instructions',
];

/**
 * Creates the cluster if it does not exist, and returns its folder. Throws if a cluster of another major version exists.
 */
export async function ensureCluster(folder: string, native: string, account: Account): Promise<string> {
  const cluster = path.join(folder, 'cluster');
  await sweepHalfMade(folder);
  const version = await readFile(path.join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined);
  if (version !== undefined) {
    if (Number(version) === embeddedMajor) return cluster;
    throw new Error(
      `${cluster} was made by PostgreSQL ${version.trim()}, this is ${embeddedMajor}. Back it up with the Runyard version that made it (runyard backup FILE; in older versions: runyard export FILE), then restore it here into a fresh data folder (runyard restore FILE).`,
    );
  }
  if (await lstat(cluster).catch(() => undefined)) {
    throw new Error(
      `${cluster} exists but is not a PostgreSQL data folder that this user can read. Move it away, or use another RUNYARD_DATA_DIR.`,
    );
  }
  const fresh = await mkdtemp(path.join(folder, 'cluster.new-'));
  try {
    await chmod(fresh, 0o700);
    if (account.uid !== process.getuid?.()) await chown(fresh, account.uid, account.gid);
    await runInitdb(fresh, native, account);
    await rename(fresh, cluster);
    await syncFolder(folder);
    return cluster;
  } catch (error) {
    await rm(fresh, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  }
}

async function sweepHalfMade(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (name.startsWith('cluster.new-'))
      await rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

async function runInitdb(fresh: string, native: string, account: Account): Promise<void> {
  const initdb = path.join(native, 'bin/initdb');
  const options = ['-D', hereFolder, ...initOptions];
  const wrapper = account.named ? undefined : await passwdWrapper(account);
  try {
    const child = spawn(wrapper ? 'bwrap' : initdb, wrapper ? [...wrapper.options, initdb, ...options] : options, {
      ...(wrapper ? {} : runAs(account)),
      cwd: fresh,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-8_000);
      });
    }
    const closed = once(child, 'close');
    const guard = child.pid === undefined ? undefined : startGuard(child.pid, fresh, account);
    guard?.on('error', () => undefined);
    try {
      const [code] = await closed;
      if (code !== 0) throw new Error(`initdb failed (exit code ${code}): ${output.trim()}`);
    } finally {
      guard?.stdin?.destroy();
    }
  } finally {
    await wrapper?.dispose();
  }
}

/**
 * Returns options with which bubblewrap gives initdb an /etc/passwd that has a line for the account. initdb looks up the name of its
 * account and fails without such a line, and containers may run with any uid. The server itself does not need the name.
 */
async function passwdWrapper(account: Account): Promise<{ options: string[]; dispose(): Promise<void> }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-passwd-'));
  const file = path.join(folder, 'passwd');
  await chmod(folder, 0o755);
  await writeFile(file, `runyard:x:${account.uid}:${account.gid}::/nonexistent:/bin/sh\n`, { mode: 0o644 });
  // If root runs bubblewrap, the account is changed only inside of it, after bubblewrap has entered the working directory.
  const [rights, change] =
    account.uid === process.getuid?.()
      ? [[], []]
      : [
          ['--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID'],
          ['setpriv', `--reuid=${account.uid}`, `--regid=${account.gid}`, '--clear-groups'],
        ];
  return {
    options: ['--dev-bind', '/', '/', '--ro-bind', file, '/etc/passwd', ...rights, '--', ...change],
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Creates the folder for all files of one embedded server. Other users cannot enter it. */
export async function ensureFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
}
