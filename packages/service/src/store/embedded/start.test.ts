import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { silentLog } from '../log.ts';
import { chooseAccount } from './account.ts';
import { locateBinaries, prepareBinaries } from './binaries.ts';
import { ensureCluster, hereFolder } from './cluster.ts';
import { worksIn } from './guard.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';
import { type EmbeddedPostgres, findEmbeddedPostgres, startEmbeddedPostgres } from './start.ts';

const asRoot = process.getuid?.() === 0;

let folder: string;
let servers: EmbeddedPostgres[];
let children: ChildProcess[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-embedded-'));
  servers = [];
  children = [];
});
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const server of servers) await server.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 20 });
});

async function start(dataDir = folder): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog });
  servers.push(server);
  return server;
}

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return rows;
}

const ownerOf = async (file: string) => (await stat(file)).uid;

test('data are there again after a stop and a start, and stopping twice does no harm', async () => {
  const first = await start();
  await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS one');
  await Promise.all([first.stop(), first.stop()]);
  const second = await start();
  expect(await query(second.url, 'SELECT * FROM kept')).toEqual([{ one: 1 }]);
});

test('the server listens on its socket only, commits safely and sorts by code point', async () => {
  const { url, connection } = await start();
  const settings = await query(
    url,
    `SELECT current_setting('listen_addresses') AS listen, current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
      current_setting('data_checksums') AS checksums, 'B' < 'a' AS "codePoints"`,
  );
  expect(settings).toEqual([{ listen: '', fsync: 'on', commit: 'on', checksums: 'on', codePoints: true }]);
  expect((await stat(connection.host)).mode & 0o777).toBe(0o700);
  expect(Buffer.byteLength(`${connection.host}/.s.PGSQL.5432`)).toBeLessThanOrEqual(107);
});

test('a second process on the folder is refused with the id of the first, which goes on', async () => {
  const { url } = await start();
  await expect(startEmbeddedPostgres({ dataDir: folder, log: silentLog })).rejects.toThrow(
    `is in use by process ${process.pid}`,
  );
  expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect((await findEmbeddedPostgres(folder))?.url).toBe(url);
});

test('of processes that start at once on a fresh folder one gets it, and the others say who has it', async () => {
  const outcomes = await Promise.all([1, 2, 3].map(() => runStart(folder)));
  const winners = outcomes.filter(({ output }) => output.includes('started'));
  expect(winners).toHaveLength(1);
  for (const { output } of outcomes.filter((outcome) => !winners.includes(outcome))) {
    expect(output).toContain(`is in use by process ${winners[0]?.child.pid}`);
  }
});

/** A process of its own that starts the server and stays; its first lines of output. */
async function runStart(
  dataDir: string,
  account: { uid?: number; gid?: number } = {},
): Promise<{ child: ChildProcess; output: string }> {
  const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(path.join(import.meta.dirname, 'start.ts'))};
    import { silentLog } from ${JSON.stringify(path.join(import.meta.dirname, '../log.ts'))};
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

test('a pid file whose number now belongs to another process does not keep the server from starting', async () => {
  await (await start()).stop();
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
  children.push(stranger);
  const pidFile = path.join(folder, 'cluster/postmaster.pid');
  await writeFile(pidFile, `${stranger.pid}\n${hereFolder}\n1700000000\n5432\n/tmp\n\n  1 1\nready   \n`);
  await start();
  expect(stranger.exitCode).toBeNull();
});

test('a PostgreSQL that somebody started by hand on the folder is left alone and named', async () => {
  await (await start()).stop();
  const cluster = path.join(folder, 'cluster');
  const account = await chooseAccount(cluster);
  const { native } = await locateBinaries();
  const sockets = await makeSocketFolder(account);
  const foreign = spawn(
    path.join(native, 'bin/postgres'),
    ['-D', hereFolder, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${sockets}`],
    {
      ...(asRoot ? { uid: account.uid, gid: account.gid } : {}),
      cwd: cluster,
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  children.push(foreign);
  await readUntil(foreign, /ready to accept connections/);
  await expect(startEmbeddedPostgres({ dataDir: folder, log: silentLog })).rejects.toThrow(
    `in use by PostgreSQL process ${foreign.pid}`,
  );
  expect(foreign.exitCode).toBeNull();
  foreign.kill('SIGINT');
  await once(foreign, 'exit');
  await removeSocketFolder(sockets);
});

async function readUntil(child: ChildProcess, pattern: RegExp): Promise<void> {
  let seen = '';
  for await (const chunk of child.stderr ?? []) {
    seen += chunk;
    if (pattern.test(seen)) return;
  }
  throw new Error(seen);
}

describe('a folder that is not usable is refused with what to do', () => {
  test('made by another major version', async () => {
    await (await start()).stop();
    await writeFile(path.join(folder, 'cluster/PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(/made by PostgreSQL 17, this is 18.*export/);
  });

  test('with something else in the place of the data', async () => {
    await mkdir(path.join(folder, 'cluster'));
    await writeFile(path.join(folder, 'cluster/letter.txt'), 'dear');
    await expect(start()).rejects.toThrow(/not a PostgreSQL data folder/);
    expect(await readFile(path.join(folder, 'cluster/letter.txt'), 'utf8')).toBe('dear');
  });
});

test('a half-made cluster of an initdb that was killed is swept', async () => {
  await mkdir(path.join(folder, 'cluster.new-abcdef/base'), { recursive: true });
  await start();
  expect((await readdir(folder)).sort()).toEqual(['cluster', 'lock', 'owner.json']);
});

test('kill -9 in the middle of initdb leaves no process, and the next start succeeds', async () => {
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, '../../../../../test/support/writing-service.ts'), folder],
    { stdio: 'ignore' },
  );
  children.push(child);
  for (;;) {
    const fresh = (await readdir(folder)).find((name) => name.startsWith('cluster.new-'));
    if (fresh !== undefined && (await readdir(path.join(folder, fresh)).catch((): string[] => [])).includes('base'))
      break;
  }
  child.kill('SIGKILL');
  await once(child, 'exit');
  await start();
  expect((await readdir(folder)).filter((name) => name.startsWith('cluster.new-'))).toEqual([]);
});

describe.runIf(asRoot)('as root', () => {
  test('the server runs as an unprivileged account, below a folder that is closed to it', async () => {
    await chmod(folder, 0o700);
    const dataDir = path.join(folder, 'project/.runyard/postgres');
    const { url } = await start(dataDir);
    const pid = Number((await readFile(path.join(dataDir, 'cluster/postmaster.pid'), 'utf8')).split('\n')[0]);
    expect(await ownerOf(`/proc/${pid}`)).not.toBe(0);
    expect(await ownerOf(`/proc/${pid}`)).toBe(await ownerOf(path.join(dataDir, 'cluster')));
    // Also what opens further files: a new backend, a new table, a checkpoint.
    await query(url, 'CREATE TABLE t AS SELECT generate_series(1, 1000) AS n; CHECKPOINT');
  });

  test('programs below a closed folder are copied once to where the server can reach them', async () => {
    const closed = path.join(folder, 'closed');
    await mkdir(closed, { mode: 0o700 });
    await chmod(folder, 0o755);
    const { native, version } = await locateBinaries();
    await cp(native, path.join(closed, 'native'), { recursive: true, verbatimSymlinks: true });
    const account = await chooseAccount(path.join(folder, 'none'));
    const places = [path.join(folder, 'cache')];
    const copy = await prepareBinaries({ native: path.join(closed, 'native'), version }, account, places);
    expect(copy).toBe(path.join(folder, 'cache', `postgresql-${version}-${process.arch}`));
    const made = (await stat(copy)).ino;
    await prepareBinaries({ native: path.join(closed, 'native'), version }, account, places);
    expect((await stat(copy)).ino).toBe(made);
    expect(await readdir(places[0] ?? '')).toHaveLength(1);
    const data = path.join(folder, 'data');
    await mkdir(data);
    await ensureCluster(data, copy, account);
  });

  test('a copy is not taken from a folder that others may write to', async () => {
    const { native, version } = await locateBinaries();
    await chmod(folder, 0o700);
    const closed = path.join(folder, 'native');
    await cp(native, closed, { recursive: true, verbatimSymlinks: true });
    const open = path.join(folder, 'open');
    await mkdir(open);
    await chmod(open, 0o777);
    const account = await chooseAccount(path.join(folder, 'none'));
    await expect(prepareBinaries({ native: closed, version }, account, [open])).rejects.toThrow(/others may write/);
  });

  test('a folder that a user made is served as that user, and stays his', async () => {
    const nobody = { uid: 65534, gid: 65534 };
    await chown(folder, nobody.uid, nobody.gid);
    const { child, output } = await runStart(folder, nobody);
    expect(output).toBe('started\n');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { url } = await start();
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await ownerOf(path.join(folder, 'cluster'))).toBe(nobody.uid);
    await servers.pop()?.stop();
    expect((await runStart(folder, nobody)).output).toBe('started\n');
  });

  test('a user whose uid has no name starts it too', async () => {
    const unnamed = { uid: 64_321, gid: 64_321 };
    await chown(folder, unnamed.uid, unnamed.gid);
    expect((await runStart(folder, unnamed)).output).toBe('started\n');
  });

  test('without an account called postgres or nobody a high uid of our own is taken', async () => {
    const passwd = path.join(folder, 'passwd');
    await writeFile(passwd, 'root:x:0:0:root:/root:/bin/sh\n');
    const account = await chooseAccount(path.join(folder, 'none'), passwd);
    expect(account).toEqual({ uid: 64_180, gid: 64_180, named: false });
    const { native } = await locateBinaries();
    const cluster = await ensureCluster(folder, native, account);
    expect([await ownerOf(cluster), await ownerOf(path.join(cluster, 'PG_VERSION'))]).toEqual([64_180, 64_180]);
    expect(worksIn(process.pid, cluster, account)).toBe(false);
  });
});

describe('library links that npm did not make', () => {
  let native: string;
  let version: string;
  beforeEach(async () => {
    const source = await locateBinaries();
    version = source.version;
    native = path.join(folder, 'package/native');
    await chmod(folder, 0o755);
    await cp(source.native, native, {
      recursive: true,
      filter: (file) => !/\.so(\.\d+)?$/.test(file) || !/(ecpg|icu|pgtypes|libpq)/.test(file),
    });
    expect(await readdir(path.join(native, 'lib'))).not.toContain('libicuuc.so.60');
  });

  test('are made in the package', async () => {
    const account = await chooseAccount(path.join(folder, 'none'));
    expect(await prepareBinaries({ native, version }, account, [])).toBe(native);
    expect(await readdir(path.join(native, 'lib'))).toContain('libicuuc.so.60');
  });

  test.runIf(asRoot)('are made in a copy where the package cannot be written', async () => {
    const copies = path.join(folder, 'copies');
    await mkdir(copies);
    await chown(copies, 65534, 65534);
    const program = `
      import { prepareBinaries } from ${JSON.stringify(path.join(import.meta.dirname, 'binaries.ts'))};
      console.log(await prepareBinaries(JSON.parse(process.env.SOURCE), { uid: 65534, gid: 65534, named: true }, [process.env.COPIES]));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      uid: 65534,
      gid: 65534,
      cwd: '/',
      env: { SOURCE: JSON.stringify({ native, version }), COPIES: copies },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    expect(await text(child.stdout)).toBe(`${path.join(copies, `postgresql-${version}-${process.arch}`)}\n`);
  });
});
