/** Starts and stops the server program of PostgreSQL once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { totalmem } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { StoreLog } from '../database/log.ts';
import { type Account, runAs } from './account.ts';
import { hereFolder, superuser } from './cluster.ts';
import { fastShutdownMs, startGuard } from './guard.ts';

/** Time that a start may take. After a crash, the server first replays its log. */
const startTimeoutMs = 60_000;

const settings: Record<string, string> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  // These three settings protect against crashes: PostgreSQL reports a commit only after the commit is on the disk.
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  io_method: 'sync',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  // The server has no replicas, so it can write less log.
  wal_level: 'minimal',
  max_wal_senders: '0',
  // Limits how much log the server must replay after a crash.
  max_wal_size: '256MB',
  // Shared memory is in files of the cluster, and each start removes old files. With the default (POSIX), segments would stay in
  // /dev/shm after kill -9, which in Docker has only 64 MB.
  dynamic_shared_memory_type: 'mmap',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Errors of statements are not logged, because they may contain data and texts of users. The client that sent the statement gets the error.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_checkpoints: 'off',
  log_line_prefix: '',
  log_destination: 'stderr',
  logging_collector: 'off',
};

/**
 * Returns the size of PostgreSQL's own cache in MB, from 32 to 128: a 32nd of `memory`, which is the memory in bytes that this process
 * may use. The system allocates memory of the cache only when PostgreSQL uses it.
 */
export const sharedBuffersMb = (memory: number): number =>
  Math.min(128, Math.max(32, Math.trunc(memory / 32 / 2 ** 20)));

/** Returns the memory of the machine, or the limit of the control group if that is less. */
const usableMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);

export interface PostmasterOptions {
  readonly native: string;
  readonly cluster: string;
  readonly account: Account;
  readonly socketFolder: string;
  /** File descriptor of the folder's lock. All processes of the server inherit it. */
  readonly lockFd: number;
  readonly log: StoreLog;
  readonly maxConnections: number;
}

export interface Postmaster {
  readonly pid: number;
  /** Resolves with the reason when the server has ended. */
  readonly exited: Promise<string>;
  stop(): Promise<void>;
}

/** Starts the server, and resolves when it answers a query. */
export async function startPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  const { native, cluster, account, socketFolder, lockFd, log, maxConnections } = options;
  const configuration = {
    ...settings,
    max_connections: String(maxConnections),
    shared_buffers: `${sharedBuffersMb(usableMemory())}MB`,
    unix_socket_directories: socketFolder,
  };
  const child = spawn(
    path.join(native, 'bin/postgres'),
    ['-D', hereFolder, ...Object.entries(configuration).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      ...runAs(account),
      cwd: cluster,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C' },
      // The server has a separate session, so Ctrl-C in the terminal does not stop it. The service stops the server at the end of its own shutdown.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', lockFd],
    },
  );
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`));
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`PostgreSQL could not be started: ${await exited}`);
  // Call this only after the check of `pid`, because a process has no streams if it could not be started.
  const lastLines = forwardLog(child, log);
  keepGuarded(pid, cluster, account, exited, log);
  const postmaster: Postmaster = { pid, exited, stop: () => stopChild(child, exited, log) };
  try {
    await firstAnswer(socketFolder, exited, lastLines);
  } catch (error) {
    await postmaster.stop();
    throw error;
  }
  // The server does not keep the service process alive. If the service ends without stopping the server, the guard stops it.
  child.unref();
  return postmaster;
}

/** Starts the guard, and starts it again if it is killed, so that the server has a guard as long as the service runs. */
function keepGuarded(pid: number, cluster: string, account: Account, exited: Promise<string>, log: StoreLog): void {
  let running = true;
  let guard: ChildProcess | undefined;
  const beginAfter = (waitMs: number) => setTimeout(() => running && begin(), waitMs).unref();
  const begin = () => {
    const begun = startGuard(pid, cluster, account);
    guard = begun;
    begun.on('error', (error) => {
      log.warn({ error: error.message }, 'the database has no guard');
      // If the guard could not be started, no `exit` event follows, so try again here.
      if (begun.pid === undefined) beginAfter(1_000);
    });
    begun.stdin?.on('error', () => undefined);
    begun.once('exit', () => beginAfter(50));
    begun.unref();
    const { stdin } = begun;
    if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  };
  begin();
  void exited.then(() => {
    running = false;
    guard?.stdin?.destroy();
  });
}

/** Resolves when the server has answered a query. Tries again until then, because the server accepts no connections at first. */
async function firstAnswer(socketFolder: string, exited: Promise<string>, lastLines: () => string): Promise<void> {
  let endReason: string | undefined;
  void exited.then((reason) => {
    endReason = reason;
  });
  const giveUp = Date.now() + startTimeoutMs;
  for (;;) {
    const client = new pg.Client({ host: socketFolder, port: 5432, user: superuser, database: 'postgres' });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('SELECT 1');
      return;
    } catch (error) {
      if (endReason !== undefined) throw new Error(`PostgreSQL did not start (${endReason}): ${lastLines()}`);
      if (Date.now() > giveUp)
        throw new Error(`PostgreSQL did not answer within ${startTimeoutMs / 1000} s: ${lastLines()}`, {
          cause: error,
        });
    } finally {
      await client.end().catch(() => undefined);
    }
    await delay(5);
  }
}

/** The log lines of PostgreSQL that are logged as warnings. Other lines are routine, or a client gets the same text as an error. */
const noteworthy =
  /^PANIC|terminated by signal|not properly shut down|No space left|Out of memory|corrupt|invalid page/i;

function forwardLog(child: ChildProcess, log: StoreLog): () => string {
  const last: string[] = [];
  if (child.stderr === null) return () => '';
  createInterface({ input: child.stderr }).on('line', (line) => {
    last.push(line);
    if (last.length > 20) last.shift();
    if (noteworthy.test(line)) log.warn({ postgres: line }, 'database');
    else log.debug({ postgres: line }, 'database');
  });
  const { stderr } = child;
  if ('unref' in stderr && typeof stderr.unref === 'function') stderr.unref();
  return () => last.join('\n');
}

async function stopChild(child: ChildProcess, exited: Promise<string>, log: StoreLog): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  child.kill('SIGINT');
  if (await endsWithin(exited, fastShutdownMs)) return;
  log.warn({}, 'the database takes long to stop; it is stopped immediately, and replays its log at the next start');
  child.kill('SIGQUIT');
  if (await endsWithin(exited, 5_000)) return;
  child.kill('SIGKILL');
  await exited;
}

async function endsWithin(exited: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([exited.then(() => true), delay(ms, false, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}
