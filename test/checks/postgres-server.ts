import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface PostgresServer {
  readonly url: string;
  readonly version: string;
  stop(): Promise<void>;
}

/**
 * Shell script that runs the server. When this process closes the input of the script or is killed, the script ends the server and removes
 * the folder.
 */
const guard =
  '"$@" & server=$!; cat >/dev/null; kill -INT "$server" 2>/dev/null; wait "$server"; cd / && rm -rf "$OLDPWD"';

/**
 * Starts a server from the programs in `bin` with a data folder of its own. The server listens only on a socket in this folder, which
 * only the server's account and root can open. It asks for no password, because the tests open thousands of connections, and each
 * check of a password takes milliseconds of processor time in the server and in the client. `test/support/system-postgres.ts` starts a
 * server with TCP and passwords.
 */
export async function startPostgresServer(bin: string): Promise<PostgresServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-server-'));
  const account = unprivilegedAccount();
  if (account) chownSync(folder, account.uid, account.gid);
  const data = path.join(folder, 'data');
  const log = path.join(folder, 'log');
  const options = { cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' }, ...account };
  let child: ChildProcess | undefined;
  const stop = async () => {
    if (child && child.exitCode === null) {
      const exited = new Promise((resolve) => child?.once('exit', resolve));
      child.stdin?.end();
      await exited;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const initdb = ['-D', data, '-U', 'runyard', '--auth-local=trust', '--auth-host=reject', '--no-sync', '-E', 'UTF8'];
    execFileSync(path.join(bin, 'initdb'), initdb, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const server = [
      path.join(bin, 'postgres'),
      '-D',
      data,
      '-k',
      folder,
      '-c',
      'listen_addresses=',
      '-c',
      'fsync=off',
      '-c',
      'autovacuum=off',
    ];
    const redirected = ['sh', '-c', 'exec "$@" >"$0" 2>&1', log, ...server];
    child = spawn('sh', ['-c', guard, 'guard', ...redirected], {
      ...options,
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
    });
    await waitForServer(data, log, child);
    const version =
      /[\d.]+/.exec(execFileSync(path.join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }))?.[0] ?? '';
    return { url: `postgres://runyard@localhost/postgres?host=${encodeURIComponent(folder)}`, version, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the account of the server, because PostgreSQL refuses to run as root: `postgres` from the Debian package, or else `nobody`. */
function unprivilegedAccount(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const account = accounts.find(([name]) => name === 'postgres') ?? accounts.find(([name]) => name === 'nobody');
  return account && { uid: Number(account[2]), gid: Number(account[3]) };
}

/** Waits until the eighth line of postmaster.pid is `ready` (PostgreSQL's miscadmin.h). */
async function waitForServer(data: string, log: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const lines = read(path.join(data, 'postmaster.pid')).split('\n');
    if (lines[7]?.trim() === 'ready') return;
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`PostgreSQL did not start:\n${read(log)}`);
    await sleep(25);
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
