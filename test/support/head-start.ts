/**
 * Puts the results of a first start into a data folder: the migrated database and the agent's runtime. A test run makes both only
 * once, so that most tests save this time. Tests of the first start on an empty folder, such as `test/newcomer.test.ts`, do not use
 * this module.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { tryLockFile } from '@runyard/system/file-lock';
import type { Database } from '../../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../../packages/service/src/platform/store/database/open-database.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/platform/store/embedded/start.ts';
import { migrateDatabase } from '../../packages/service/src/platform/store/migrations/migrate.ts';
import { chooseStateRoot } from '../../packages/worker/src/state/state-root.ts';
import { newSecretsKey } from './secrets-key.ts';

const run = promisify(execFile);

/** Name of the environment variable with the folder of the test run, which `database.ts` makes and removes. */
export const headStartVariable = 'TEST_HEAD_START';

/**
 * Returns the path for `name` in the folder of the test run. Returns undefined outside of a test run, because benchmarks measure whole
 * first starts.
 */
function placeOf(name: string): string | undefined {
  const folder = process.env[headStartVariable];
  return folder === undefined ? undefined : path.join(folder, name);
}

/**
 * Returns the folder `name` of the test run. The first process that needs the folder makes it with `make`, and other processes wait
 * until the folder exists. Returns undefined outside of a test run.
 */
export async function makeOnce(name: string, make: (folder: string) => Promise<void>): Promise<string | undefined> {
  const made = placeOf(name);
  if (made === undefined) return undefined;
  while (!existsSync(made)) {
    const lock = tryLockFile(`${made}.lock`);
    if (lock === undefined) {
      await delay(100);
      continue;
    }
    try {
      if (existsSync(made)) break;
      const making = `${made}.making`;
      // Remove this folder first: a killed process may have left it.
      await rm(making, { recursive: true, force: true });
      await make(making);
      await rename(making, made);
    } finally {
      lock.release();
    }
  }
  return made;
}

/** Copies a folder with owners and modes. With `-l`, makes hard links instead of copies. */
export const copyTree = (from: string, to: string, ...flags: string[]) => run('cp', ['-a', ...flags, from, to]);

/** Puts a migrated database and a secrets key into a data folder that has none yet. */
export async function giveDatabase(dataDir: string): Promise<void> {
  const made = await makeOnce('postgres', makeMigratedDatabase);
  if (made === undefined) return;
  const folder = path.join(dataDir, 'postgres');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await copyTree(path.join(made, 'cluster'), folder, '--sparse=always');
  await writeFile(path.join(dataDir, 'secrets-key'), newSecretsKey(), { mode: 0o600 });
}

async function makeMigratedDatabase(making: string): Promise<void> {
  const server = await startEmbeddedPostgres({ dataDir: making, log: silentLog });
  let currentLog = '';
  try {
    const db = await openDatabase({ address: server.connection, maxConnections: 1, log: silentLog });
    await migrateDatabase(db);
    await dropTemplates(db);
    currentLog = await startNextLog(db);
    await db.close();
  } finally {
    await server.stop();
  }
  const logs = path.join(making, 'cluster/pg_wal');
  for (const name of await readdir(logs))
    if (/^[0-9A-F]{24}$/.test(name) && name > currentLog) await rm(path.join(logs, name));
}

// Each megabyte of a copy takes time and disk space. So a copy omits the template databases, which no program uses, and has an empty log.

async function dropTemplates(db: Database): Promise<void> {
  for (const template of ['template0', 'template1']) {
    await db.query(`ALTER DATABASE ${template} IS_TEMPLATE false`);
    await db.query(`DROP DATABASE ${template}`);
  }
}

/**
 * Starts a new file of the write-ahead log, and returns the name of the file. The file is nearly empty, so that a sparse copy of it
 * needs no disk space.
 */
async function startNextLog(db: Database): Promise<string> {
  await db.query('SELECT pg_switch_wal()');
  await db.query('CHECKPOINT');
  const [row] = await db.query<{ name: string }>('SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS name');
  if (row === undefined) throw new Error('the server did not name the file of its log');
  return row.name;
}

/** Returns the folder in which a worker of this data folder looks for the agent's runtime, and makes its parent folders. */
async function runtimeFolder(dataDir: string): Promise<string> {
  const workerFolder = path.join(dataDir, 'worker');
  await mkdir(workerFolder, { recursive: true, mode: 0o700 });
  await letUsersPass(dataDir);
  return path.join((await chooseStateRoot(workerFolder)).folder, 'runtime');
}

/**
 * Lets the users of sandboxes enter a data folder of the tests. Otherwise a worker that runs as root would put its sandboxes into
 * /var/lib. Hard links from a folder in memory to /var/lib are not possible, so each worker would make its own runtime, which takes a
 * second of processor time.
 */
async function letUsersPass(dataDir: string): Promise<void> {
  for (let at = path.resolve(dataDir); at.startsWith(`${tmpdir()}${path.sep}`); at = path.dirname(at)) {
    const { mode } = await stat(at);
    if ((mode & 0o001) === 0) await chmod(at, (mode & 0o777) | 0o011);
  }
}

/**
 * Puts the agent's runtime that `keepRuntime` stored under this name into a data folder without a runtime. The worker checks the stamp of
 * the runtime.
 */
export async function giveRuntime(dataDir: string, name = 'runtime'): Promise<void> {
  const made = placeOf(name);
  if (made === undefined) return;
  const folder = await runtimeFolder(dataDir);
  if (!existsSync(made) || existsSync(folder)) return;
  // Make hard links, because the runtime is large: it contains Node twice. If the file systems differ, the worker makes its own
  // runtime.
  await copyTree(made, folder, '-l').catch(() => rm(folder, { recursive: true, force: true }));
}

/** Stores the runtime that a worker of this data folder has made, so that `giveRuntime` can give it to later workers. */
export async function keepRuntime(dataDir: string, name = 'runtime'): Promise<void> {
  const made = placeOf(name);
  if (made === undefined || existsSync(made)) return;
  const folder = await runtimeFolder(dataDir);
  const names = await readdir(folder).catch((): string[] => []);
  if (!names.includes('stamp.json')) return;
  const making = `${made}.${randomBytes(4).toString('hex')}`;
  await copyTree(folder, making, '-l')
    .then(() => rename(making, made))
    // This fails if the folders are on different file systems, or if another process has already stored the runtime.
    .catch(() => rm(making, { recursive: true, force: true }));
}
