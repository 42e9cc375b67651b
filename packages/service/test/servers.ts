/** Test support: embedded PostgreSQL servers, in this process or in another process. Each test has its own data folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach } from 'vitest';
import { copyTree, makeOnce } from '../../../test/support/head-start.ts';
import { silentLog } from '../src/platform/store/database/log.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/platform/store/embedded/start.ts';

export interface TestServers {
  /** Folder of the present test, which is removed after the test. */
  folder(): string;
  /** Processes to kill after the test. */
  readonly children: ChildProcess[];
  /** Starts a server in this process, and stops it after the test. Default folder: the folder of the test. */
  start(dataDir?: string): Promise<EmbeddedPostgres>;
  /** Starts a separate process, which starts a server and keeps running. Returns the process and the first output of the process. */
  runStart(dataDir: string, account?: { uid?: number; gid?: number }): Promise<{ child: ChildProcess; output: string }>;
}

/**
 * Prepares servers for the tests of a file. `copies`: a start in an empty folder first copies a cluster into it, because creating a
 * cluster takes most of the time of a start. The embedded server of this repository has created that cluster once for the whole test
 * run.
 */
export function testServers({ copies = false } = {}): TestServers {
  let folder = '';
  const servers: EmbeddedPostgres[] = [];
  const children: ChildProcess[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-embedded-'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const server of servers.splice(0)) await server.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  });
  async function start(dataDir = folder): Promise<EmbeddedPostgres> {
    if (copies && (await readdir(dataDir)).length === 0) await giveCluster(dataDir);
    const server = await startEmbeddedPostgres({ dataDir, log: silentLog });
    servers.push(server);
    return server;
  }

  async function runStart(
    dataDir: string,
    account: { uid?: number; gid?: number } = {},
  ): Promise<{ child: ChildProcess; output: string }> {
    const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(path.join(import.meta.dirname, '../src/platform/store/embedded/start.ts'))};
    import { silentLog } from ${JSON.stringify(path.join(import.meta.dirname, '../src/platform/store/database/log.ts'))};
    try {
      await startEmbeddedPostgres({ dataDir: process.env.FOLDER, log: silentLog });
      console.log('started');
      setInterval(() => undefined, 1000);
    } catch (error) { console.log(error.message); }`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      ...account,
      cwd: '/',
      env: { PATH: process.env.PATH, FOLDER: dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
    return { child, output: chunk.toString() };
  }

  return { folder: () => folder, children, start, runStart };
}

async function giveCluster(dataDir: string): Promise<void> {
  const made = await makeOnce('embedded', async (making) => {
    const server = await startEmbeddedPostgres({ dataDir: making, log: silentLog });
    await server.stop();
  });
  if (made !== undefined) await copyTree(path.join(made, 'cluster'), dataDir, '--sparse=always');
}

/** Executes a statement on a separate connection, and returns the rows. */
export async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return rows;
}

/** Its user id. */
export const ownerOf = async (file: string) => (await stat(file)).uid;
