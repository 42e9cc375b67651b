import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sharedFilesystem, writeEtc } from './filesystem.ts';

let top: string;
let source: string;
beforeEach(async () => {
  top = await mkdtemp(path.join(os.tmpdir(), 'runyard-etc-'));
  source = path.join(top, 'machine');
  await mkdir(path.join(source, 'ssl/certs'), { recursive: true });
  await mkdir(path.join(source, 'ld.so.conf.d/deeper'), { recursive: true });
  await writeFile(path.join(source, 'services'), 'ssh 22/tcp\n');
  await writeFile(path.join(source, 'ld.so.conf.d/a.conf'), '/a\n');
  await writeFile(path.join(source, 'shadow'), 'secret');
  await writeFile(path.join(source, 'ld.so.cache'), 'binary');
  await symlink('/usr/share/zoneinfo/Etc/UTC', path.join(source, 'localtime'));
});
afterEach(() => rm(top, { recursive: true }));

describe('/etc of the sandboxes', () => {
  test('has generated files, copies of some text files, and empty places for parts of /etc of the machine', async () => {
    const { folder, places } = await writeEtc(top, source);
    expect((await readdir(folder)).toSorted()).toEqual(
      ['group', 'hostname', 'hosts', 'ld.so.cache', 'ld.so.conf.d', 'nsswitch.conf', 'passwd', 'services', 'ssl']
        .concat(places.includes('localtime') ? ['localtime'] : [])
        .toSorted(),
    );
    expect(places).toEqual(expect.arrayContaining(['ld.so.cache', 'ssl/certs']));
    expect(await readFile(path.join(folder, 'services'), 'utf8')).toBe('ssh 22/tcp\n');
    expect(await readFile(path.join(folder, 'ld.so.conf.d/a.conf'), 'utf8')).toBe('/a\n');
    expect(await readFile(path.join(folder, 'ld.so.cache'), 'utf8')).toBe('');
    expect(await readFile(path.join(folder, 'passwd'), 'utf8')).toContain('agent:x:1000:');
  });

  test("can be read by every user and written only by the worker's user, whatever umask the worker has", async () => {
    const before = process.umask(0o077);
    const { folder } = await writeEtc(top, source).finally(() => process.umask(before));
    const modes = await Promise.all(
      ['..', '', 'ssl', 'ssl/certs', 'services', 'passwd'].map(
        async (name) => (await stat(path.join(folder, name))).mode & 0o777,
      ),
    );
    expect(modes).toEqual([0o755, 0o755, 0o755, 0o755, 0o644, 0o644]);
  });

  test('does not change for running sandboxes when /etc of the machine changes', async () => {
    const first = await writeEtc(top, source);
    expect(await writeEtc(top, source)).toEqual(first);
    await writeFile(path.join(source, 'services'), 'ssh 2222/tcp\n');
    await mkdir(path.join(source, 'alternatives'));
    const second = await writeEtc(top, source);
    expect(second.folder).not.toBe(first.folder);
    expect(second.places).toContain('alternatives');
    expect(await readFile(path.join(first.folder, 'services'), 'utf8')).toBe('ssh 22/tcp\n');
    expect(await readFile(path.join(second.folder, 'services'), 'utf8')).toBe('ssh 2222/tcp\n');
  });

  test('is made only once if several processes start at the same time', async () => {
    const made = await Promise.all([1, 2, 3].map(() => writeEtc(top, source)));
    expect(new Set(made.map(({ folder }) => folder)).size).toBe(1);
    expect(await readdir(path.join(top, 'etc'))).toHaveLength(1);
  });

  test('has no copies of text files that cannot be read or are too long', async () => {
    await writeFile(path.join(source, 'protocols'), Buffer.alloc(1024 * 1024 + 1, 'x'));
    await rm(path.join(source, 'services'));
    await mkdir(path.join(source, 'services'));
    await chmod(path.join(source, 'services'), 0o700);
    const names = await readdir((await writeEtc(top, source)).folder);
    expect(names).not.toContain('protocols');
    expect(names).not.toContain('services');
  });

  test('needs one mount for the folder and one for each part of /etc of the machine that sandboxes see', async () => {
    const etc = await writeEtc(top, source);
    const options = await sharedFilesystem(etc);
    const mounts = options.flatMap((option, index) => (option.startsWith('--ro-bind') ? [options[index + 2]] : []));
    expect(mounts.filter((place) => place?.startsWith('/etc'))).toEqual([
      '/etc',
      ...etc.places.map((name) => `/etc/${name}`),
    ]);
  });
});
