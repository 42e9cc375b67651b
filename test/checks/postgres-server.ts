import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';

export interface PostgresServer {
  readonly url: string;
  readonly version: string;
  stop(): Promise<void>;
}

/** Ends the server when our end of its input closes, even after kill -9. */
const guard = '"$@" & server=$!; cat >/dev/null; kill -INT "$server" 2>/dev/null; wait "$server"';

/** Starts a server from the programs in `bin` on a free loopback port, with a data folder and a password of its own. */
export async function startPostgresServer(bin: string): Promise<PostgresServer> {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-server-'));
  const account = unprivilegedAccount();
  if (account) chownSync(folder, account.uid, account.gid);
  const password = randomBytes(16).toString('hex');
  const passwordFile = path.join(folder, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account) chownSync(passwordFile, account.uid, account.gid);
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
    const initdb = [
      '-D',
      data,
      '-U',
      'runyard',
      '--auth=scram-sha-256',
      `--pwfile=${passwordFile}`,
      '--no-sync',
      '-E',
      'UTF8',
    ];
    execFileSync(path.join(bin, 'initdb'), initdb, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const port = await freePort();
    const server = [
      path.join(bin, 'postgres'),
      '-D',
      data,
      '-p',
      String(port),
      '-k',
      folder,
      '-c',
      'listen_addresses=127.0.0.1',
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
    return { url: `postgres://runyard:${password}@127.0.0.1:${port}/postgres`, version, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** PostgreSQL refuses to run as root: `postgres`, which its package makes, or else `nobody`. */
function unprivilegedAccount(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const account = accounts.find(([name]) => name === 'postgres') ?? accounts.find(([name]) => name === 'nobody');
  return account && { uid: Number(account[2]), gid: Number(account[3]) };
}

/** The eighth line of postmaster.pid says `ready` (PostgreSQL's miscadmin.h). */
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
