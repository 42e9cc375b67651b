import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { sharedFilesystem, writeEtc } from './filesystem.ts';

let top: string;
let source: string;
let usr: string;
beforeEach(async () => {
  top = newFolder();
  source = path.join(top, 'machine');
  usr = path.join(top, 'usr');
  await mkdir(path.join(source, 'ssl/certs'), { recursive: true });
  await mkdir(path.join(source, 'ld.so.conf.d/deeper'), { recursive: true });
  await writeFile(path.join(source, 'services'), 'ssh 22/tcp\n');
  await writeFile(path.join(source, 'ld.so.conf.d/a.conf'), '/a\n');
  await writeFile(path.join(source, 'shadow'), 'secret');
  await writeFile(path.join(source, 'ld.so.cache'), 'binary');
  await symlink('/usr/share/zoneinfo/Etc/UTC', path.join(source, 'localtime'));
});

describe('/etc of the sandboxes', () => {
  test('has generated files, copies of some text files, and empty places for parts of /etc of the machine', async () => {
    const { folder, places } = await writeEtc(top, source, usr);
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
    const { folder } = await writeEtc(top, source, usr).finally(() => process.umask(before));
    const modes = await Promise.all(
      ['..', '', 'ssl', 'ssl/certs', 'services', 'passwd'].map(
        async (name) => (await stat(path.join(folder, name))).mode & 0o777,
      ),
    );
    expect(modes).toEqual([0o755, 0o755, 0o755, 0o755, 0o644, 0o644]);
  });

  test('does not change for running sandboxes when /etc of the machine changes', async () => {
    const first = await writeEtc(top, source, usr);
    expect(await writeEtc(top, source, usr)).toEqual(first);
    await writeFile(path.join(source, 'services'), 'ssh 2222/tcp\n');
    await mkdir(path.join(source, 'alternatives'));
    const second = await writeEtc(top, source, usr);
    expect(second.folder).not.toBe(first.folder);
    expect(second.places).toContain('alternatives');
    expect(await readFile(path.join(first.folder, 'services'), 'utf8')).toBe('ssh 22/tcp\n');
    expect(await readFile(path.join(second.folder, 'services'), 'utf8')).toBe('ssh 2222/tcp\n');
  });

  test('is made only once if several processes start at the same time', async () => {
    const made = await Promise.all([1, 2, 3].map(() => writeEtc(top, source, usr)));
    expect(new Set(made.map(({ folder }) => folder)).size).toBe(1);
    expect((await readdir(path.join(top, 'etc'))).filter((name) => name !== 'needed')).toHaveLength(1);
  });

  test('has no copies of text files that cannot be read or are too long', async () => {
    await writeFile(path.join(source, 'protocols'), Buffer.alloc(1024 * 1024 + 1, 'x'));
    await rm(path.join(source, 'services'));
    await mkdir(path.join(source, 'services'));
    await chmod(path.join(source, 'services'), 0o700);
    const names = await readdir((await writeEtc(top, source, usr)).folder);
    expect(names).not.toContain('protocols');
    expect(names).not.toContain('services');
  });

  test('has the configuration of programs to which links in /usr lead, but nothing that may be a secret', async () => {
    const write = async (name: string, text: string, mode = 0o644) => {
      await mkdir(path.dirname(path.join(source, name)), { recursive: true });
      await writeFile(path.join(source, name), text);
      await chmod(path.join(source, name), mode);
    };
    const link = async (place: string, target: string) => {
      await mkdir(path.dirname(path.join(usr, place)), { recursive: true });
      await symlink(path.join(source, target), path.join(usr, place));
    };
    await write('java-17/security/java.security', 'a');
    await write('java-17/not-linked', 'a');
    await write('java-17/management/jmxremote.password', 'a');
    await write('maven/settings.xml', '<settings><!-- <password>example</password> --></settings>');
    await write('maven/company.xml', '<settings><password>real</password></settings>');
    await write('ssl/private/key.pem', 'a');
    await chmod(path.join(source, 'ssl/private'), 0o710);
    await write('app/closed.conf', 'a', 0o640);
    await write('app/open.conf', 'a');
    await write('environment', 'TOKEN=a');
    await write('fonts/fonts.conf', 'a');
    await link('lib/jvm/conf/security/java.security', 'java-17/security/java.security');
    await link('lib/jvm/conf/management/jmxremote.password', 'java-17/management/jmxremote.password');
    await link('share/maven/conf', 'maven');
    await link('lib/ssl/private', 'ssl/private');
    await link('share/app', 'app');
    await link('lib/environment.d/99-environment.conf', 'environment');
    await link('lib/x/shadow', 'shadow');
    const { folder } = await writeEtc(top, source, usr);
    const has = async (name: string) => (await stat(path.join(folder, name)).catch(() => undefined)) !== undefined;
    for (const name of ['java-17/security/java.security', 'maven/settings.xml', 'app/open.conf', 'fonts/fonts.conf'])
      expect(await has(name), name).toBe(true);
    for (const name of [
      ...['java-17/not-linked', 'java-17/management/jmxremote.password', 'maven/company.xml', 'ssl/private'],
      ...['app/closed.conf', 'environment', 'shadow'],
    ])
      expect(await has(name), name).toBe(false);
    expect(await readFile(path.join(folder, 'passwd'), 'utf8')).toContain('agent:x:1000:');
    await link('lib/later', 'java-17/not-linked');
    await write('new-folder/changes-the-time', 'a');
    expect(await readFile(path.join((await writeEtc(top, source, usr)).folder, 'java-17/not-linked'), 'utf8')).toBe(
      'a',
    );
  });

  test('needs one mount for the folder and one for each part of /etc of the machine that sandboxes see', async () => {
    const etc = await writeEtc(top, source, usr);
    const options = await sharedFilesystem(etc);
    const mounts = options.flatMap((option, index) => (option.startsWith('--ro-bind') ? [options[index + 2]] : []));
    expect(mounts.filter((place) => place?.startsWith('/etc'))).toEqual([
      '/etc',
      ...etc.places.map((name) => `/etc/${name}`),
    ]);
  });
});
