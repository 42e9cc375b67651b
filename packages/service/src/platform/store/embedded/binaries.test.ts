import { spawn } from 'node:child_process';
import { chmod, chown, cp, mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { testServers } from '../../../../test/servers.ts';
import { chooseAccount } from './account.ts';
import { locateBinaries, prepareBinaries } from './binaries.ts';
import { ensureCluster } from './cluster.ts';

const asRoot = process.getuid?.() === 0;
const { folder } = testServers();

describe.runIf(asRoot)('the preparation of the PostgreSQL programs as root', () => {
  test("copies the programs once to a folder that the server's account can read, if this account cannot enter their present folder", async () => {
    const closed = path.join(folder(), 'closed');
    await mkdir(closed, { mode: 0o700 });
    await chmod(folder(), 0o755);
    const { native, version } = await locateBinaries();
    await cp(native, path.join(closed, 'native'), { recursive: true, verbatimSymlinks: true });
    const account = await chooseAccount(path.join(folder(), 'none'));
    const places = [path.join(folder(), 'cache')];
    const copy = await prepareBinaries({ native: path.join(closed, 'native'), version }, account, places);
    expect(copy).toBe(path.join(folder(), 'cache', `postgresql-${version}-${process.arch}`));
    const made = (await stat(copy)).ino;
    await prepareBinaries({ native: path.join(closed, 'native'), version }, account, places);
    expect((await stat(copy)).ino).toBe(made);
    expect(await readdir(places[0] ?? '')).toHaveLength(1);
    const data = path.join(folder(), 'data');
    await mkdir(data);
    await ensureCluster(data, copy, account);
  });

  test('refuses a copy in a folder that others may write to', async () => {
    const { native, version } = await locateBinaries();
    await chmod(folder(), 0o700);
    const closed = path.join(folder(), 'native');
    await cp(native, closed, { recursive: true, verbatimSymlinks: true });
    const open = path.join(folder(), 'open');
    await mkdir(open);
    await chmod(open, 0o777);
    const account = await chooseAccount(path.join(folder(), 'none'));
    await expect(prepareBinaries({ native: closed, version }, account, [open])).rejects.toThrow(/others may write/);
  });
});

describe('missing library links', () => {
  let native: string;
  let version: string;
  beforeEach(async () => {
    const source = await locateBinaries();
    version = source.version;
    native = path.join(folder(), 'package/native');
    await chmod(folder(), 0o755);
    await cp(source.native, native, {
      recursive: true,
      filter: (file) => !/\.so(\.\d+)?$/.test(file) || !/(ecpg|icu|pgtypes|libpq)/.test(file),
    });
    expect(await readdir(path.join(native, 'lib'))).not.toContain('libicuuc.so.60');
  });

  test('are created in the folder of the package', async () => {
    const account = await chooseAccount(path.join(folder(), 'none'));
    expect(await prepareBinaries({ native, version }, account, [])).toBe(native);
    expect(await readdir(path.join(native, 'lib'))).toContain('libicuuc.so.60');
  });

  test.runIf(asRoot)('are created in a copy when the package is read-only', async () => {
    const copies = path.join(folder(), 'copies');
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
