import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { query, testServers } from '../../../../test/servers.ts';
import { silentLog } from '../database/log.ts';
import { chooseAccount } from './account.ts';
import { locateBinaries } from './binaries.ts';
import { hereFolder } from './cluster.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from './start.ts';

const asRoot = process.getuid?.() === 0;
const { folder, children, start, runStart } = testServers({ copies: true });

test('the embedded PostgreSQL keeps its data when it is stopped and started again, and can be stopped twice', async () => {
  const first = await start();
  await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS one');
  await Promise.all([first.stop(), first.stop()]);
  const second = await start();
  expect(await query(second.url, 'SELECT * FROM kept')).toEqual([{ one: 1 }]);
});

test('the embedded PostgreSQL listens only on its Unix socket, commits durably and sorts by code point', async () => {
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

test('a second process on a data folder fails with an error that names the first process, and the first process continues', async () => {
  const { url } = await start();
  await expect(startEmbeddedPostgres({ dataDir: folder(), log: silentLog })).rejects.toThrow(
    `is in use by process ${process.pid}`,
  );
  expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect((await findEmbeddedPostgres(folder()))?.url).toBe(url);
});

test('if several processes use a new folder at once, one of them starts, and the errors of the others name it', async () => {
  const outcomes = await Promise.all([1, 2, 3].map(() => runStart(folder())));
  const winners = outcomes.filter(({ output }) => output.includes('started'));
  expect(winners).toHaveLength(1);
  for (const { output } of outcomes.filter((outcome) => !winners.includes(outcome))) {
    expect(output).toContain(`is in use by process ${winners[0]?.child.pid}`);
  }
});

test('the embedded PostgreSQL starts even if the process id in its pid file now belongs to another process', async () => {
  await (await start()).stop();
  const stranger = spawn('sleep', ['60'], { stdio: 'ignore' });
  children.push(stranger);
  const pidFile = path.join(folder(), 'cluster/postmaster.pid');
  await writeFile(pidFile, `${stranger.pid}\n${hereFolder}\n1700000000\n5432\n/tmp\n\n  1 1\nready   \n`);
  await start();
  expect(stranger.exitCode).toBeNull();
});

test('a start does not stop a PostgreSQL that a person started on the same folder, and fails with an error that names this process', async () => {
  await (await start()).stop();
  const cluster = path.join(folder(), 'cluster');
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
  await expect(startEmbeddedPostgres({ dataDir: folder(), log: silentLog })).rejects.toThrow(
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

describe('a data folder', () => {
  test('that another major version of PostgreSQL made is refused, and the error names the export', async () => {
    await (await start()).stop();
    await writeFile(path.join(folder(), 'cluster/PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(/made by PostgreSQL 17, this is 18.*export/);
  });

  test('whose `cluster` subfolder contains other files is refused and stays unchanged', async () => {
    await mkdir(path.join(folder(), 'cluster'));
    await writeFile(path.join(folder(), 'cluster/letter.txt'), 'dear');
    await expect(start()).rejects.toThrow(/not a PostgreSQL data folder/);
    expect(await readFile(path.join(folder(), 'cluster/letter.txt'), 'utf8')).toBe('dear');
  });
});

test('a start deletes the incomplete cluster of a killed initdb', async () => {
  await mkdir(path.join(folder(), 'cluster.new-abcdef/base'), { recursive: true });
  await start();
  expect((await readdir(folder())).sort()).toEqual(['cluster', 'lock', 'owner.json']);
});

test('kill -9 during initdb leaves no process, and the next start succeeds', async () => {
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, '../../../../../../test/support/writing-service.ts'), folder()],
    { stdio: 'ignore' },
  );
  children.push(child);
  for (;;) {
    const fresh = (await readdir(folder())).find((name) => name.startsWith('cluster.new-'));
    if (fresh !== undefined && (await readdir(path.join(folder(), fresh)).catch((): string[] => [])).includes('base'))
      break;
    await delay(2);
  }
  child.kill('SIGKILL');
  await once(child, 'exit');
  await start();
  expect((await readdir(folder())).filter((name) => name.startsWith('cluster.new-'))).toEqual([]);
});
