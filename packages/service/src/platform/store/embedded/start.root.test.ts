import { once } from 'node:events';
import { chmod, chown, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { ownerOf, query, testServers } from '../../../../test/servers.ts';
import { chooseAccount } from './account.ts';
import { locateBinaries } from './binaries.ts';
import { ensureCluster } from './cluster.ts';
import { worksIn } from './guard.ts';

const asRoot = process.getuid?.() === 0;
const { folder, start, runStart } = testServers();

describe.runIf(asRoot)('the embedded PostgreSQL, started by root,', () => {
  test('runs under an unprivileged account, even if this account cannot enter the parent folder of the data', async () => {
    await chmod(folder(), 0o700);
    const dataDir = path.join(folder(), 'project/.runyard/postgres');
    const { url } = await start(dataDir);
    const pid = Number((await readFile(path.join(dataDir, 'cluster/postmaster.pid'), 'utf8')).split('\n')[0]);
    expect(await ownerOf(`/proc/${pid}`)).not.toBe(0);
    expect(await ownerOf(`/proc/${pid}`)).toBe(await ownerOf(path.join(dataDir, 'cluster')));
    // These statements make the server open further files: for a new backend process, a new table and a checkpoint.
    await query(url, 'CREATE TABLE t AS SELECT generate_series(1, 1000) AS n; CHECKPOINT');
  });

  test('runs under the account that owns the data folder, and does not change the owner', async () => {
    const nobody = { uid: 65534, gid: 65534 };
    await chown(folder(), nobody.uid, nobody.gid);
    const { child, output } = await runStart(folder(), nobody);
    expect(output).toBe('started\n');
    child.kill('SIGKILL');
    await once(child, 'exit');
    const served = await start();
    expect(await query(served.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(await ownerOf(path.join(folder(), 'cluster'))).toBe(nobody.uid);
    await served.stop();
    expect((await runStart(folder(), nobody)).output).toBe('started\n');
  });

  test('starts in a folder of a user whose uid has no name', async () => {
    const unnamed = { uid: 64_321, gid: 64_321 };
    await chown(folder(), unnamed.uid, unnamed.gid);
    expect((await runStart(folder(), unnamed)).output).toBe('started\n');
  });

  test('uses a fixed high uid if the system has neither an account postgres nor an account nobody', async () => {
    const passwd = path.join(folder(), 'passwd');
    await writeFile(passwd, 'root:x:0:0:root:/root:/bin/sh\n');
    const account = await chooseAccount(path.join(folder(), 'none'), passwd);
    expect(account).toEqual({ uid: 64_180, gid: 64_180, named: false });
    const { native } = await locateBinaries();
    const cluster = await ensureCluster(folder(), native, account);
    expect([await ownerOf(cluster), await ownerOf(path.join(cluster, 'PG_VERSION'))]).toEqual([64_180, 64_180]);
    expect(worksIn(process.pid, cluster, account)).toBe(false);
  });
});
