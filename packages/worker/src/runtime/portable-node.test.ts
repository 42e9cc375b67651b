import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { withoutOpensslFile } from './agent-program.ts';
import { placePortableNode, portableChanges } from './portable-node.ts';

let folder = '';
beforeEach(async () => {
  // The path must be short, because it replaces the path of the interpreter in the program file and must not be longer.
  folder = newFolder('/tmp/ry');
});

const reader = async (file: string) => {
  const handle = await open(file);
  return {
    read: async (offset: number, bytes: number) => (await handle.read(Buffer.alloc(bytes), 0, bytes, offset)).buffer,
    close: () => handle.close(),
  };
};

test('placePortableNode installs a Node that loads only libraries of its own folder', async () => {
  await placePortableNode(folder, folder);
  const script = 'JSON.stringify([process.execPath, ...process.report.getReport().sharedObjects.slice(1)])';
  const printed = execFileSync(path.join(folder, 'node'), ['-p', script], {
    encoding: 'utf8',
    env: { LD_LIBRARY_PATH: '/lib/x86_64-linux-gnu' },
  });
  const files: string[] = JSON.parse(printed);
  expect(files.length).toBeGreaterThan(4);
  for (const file of files) expect(file.startsWith(`${folder}/`), file).toBe(true);
});

test('placePortableNode installs a Node that loads no library that configuration files of an image name', async () => {
  await placePortableNode(folder, folder);
  const etc = path.join(folder, 'etc');
  await mkdir(etc);
  await writeFile(path.join(etc, 'ld.so.preload'), '/evil-preload.so\n');
  await writeFile(path.join(etc, 'nsswitch.conf'), 'passwd: evil\nhosts: evil\n');
  const openssl = path.join(etc, 'openssl.cnf');
  const settings = [
    'nodejs_conf = a',
    '[a]',
    'engines = b',
    '[b]',
    'c = d',
    '[d]',
    'dynamic_path = /evil-engine.so',
    '',
  ];
  await writeFile(openssl, settings.join('\n'));
  const script = `try { os.userInfo() } catch {} dns.lookup('name.invalid', () => console.log('done'))`;
  /** Runs the program in a file system with the /etc of a hostile image, and returns the whole output of the program. */
  const printed = (program: readonly string[]): string => {
    const view = [
      '--unshare-all',
      '--ro-bind',
      '/',
      '/',
      '--dev',
      '/dev',
      '--ro-bind',
      etc,
      '/etc',
      '--setenv',
      'LD_DEBUG',
      'libs',
    ];
    const env = { PATH: process.env.PATH, OPENSSL_CONF: openssl };
    const { stdout, stderr } = spawnSync('bwrap', [...view, ...program, '-e', script], { encoding: 'utf8', env });
    return stdout + stderr;
  };
  const evil = (program: readonly string[]) => new Set(printed(program).match(/evil[\w-]*|done/g));
  expect(evil([process.execPath])).toEqual(new Set(['evil-preload', 'evil-engine']));
  expect(evil([process.execPath, withoutOpensslFile])).toEqual(new Set(['evil-preload', 'evil', 'done']));
  expect(evil([path.join(folder, 'node'), withoutOpensslFile])).toEqual(new Set(['done']));
});

test('portableChanges refuses a folder whose path is too long, and a file that is not an ELF program', async () => {
  const node = await reader(process.execPath);
  await expect(portableChanges(node.read, '/a/folder/with/a/long/path')).rejects.toThrow('are needed');
  await node.close();
  const script = await reader(import.meta.filename);
  await expect(portableChanges(script.read, '/a')).rejects.toThrow('ELF');
  await script.close();
});
