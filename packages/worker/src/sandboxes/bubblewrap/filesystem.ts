import { lstat, mkdir, readlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { harnessFolderInside } from '@runyard/contract/harness-presets/presets';

/** Uid inside every sandbox. */
export const insideUid = 1000;

const etcFiles: Readonly<Record<string, string>> = {
  passwd: [
    'root:x:0:0:root:/root:/usr/sbin/nologin',
    `agent:x:${insideUid}:${insideUid}:agent:/home/agent:/bin/sh`,
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
    '',
  ].join('\n'),
  group: ['root:x:0:', `agent:x:${insideUid}:`, 'nogroup:x:65534:', ''].join('\n'),
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  hostname: 'sandbox\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files\n',
};

/** Parts of the machine's /etc that programs need and every user may read: libraries, certificates, time zone, alternatives. */
const fromHostEtc = [
  'alternatives',
  'ca-certificates',
  'ca-certificates.conf',
  'crypto-policies',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'mime.types',
  'pki/ca-trust',
  'pki/tls/certs',
  'protocols',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
];

/** Writes the generated files of /etc once per worker. Returns the folder. */
export async function writeEtc(stateRoot: string): Promise<string> {
  const folder = path.join(stateRoot, 'etc');
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(etcFiles)) await writeFile(path.join(folder, name), text, { mode: 0o644 });
  return folder;
}

/**
 * Returns bwrap's options for what all sandboxes of a worker share and cannot write: the machine's programs and libraries, the
 * programs of `harnessDir`, and the generated /etc. It is an allow-list; other files of the machine do not exist inside.
 */
export async function sharedFilesystem(etc: string, harnessDir?: string): Promise<string[]> {
  const options = ['--ro-bind', '/usr', '/usr'];
  if (harnessDir !== undefined) options.push('--ro-bind-try', harnessDir, harnessFolderInside);
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']) {
    const found = await lstat(`/${name}`).catch(() => undefined);
    if (found?.isSymbolicLink()) options.push('--symlink', await readlink(`/${name}`), `/${name}`);
    else if (found !== undefined) options.push('--ro-bind', `/${name}`, `/${name}`);
  }
  for (const name of Object.keys(etcFiles)) options.push('--ro-bind', path.join(etc, name), `/etc/${name}`);
  for (const name of fromHostEtc) options.push('--ro-bind-try', `/etc/${name}`, `/etc/${name}`);
  return [...options, '--symlink', '/tmp', '/var/tmp', '--symlink', '/run', '/var/run'];
}
