import { createHash } from 'node:crypto';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { makeFolder } from '../../state/make-folder.ts';
import { etcOfPrograms } from './etc-of-programs.ts';

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

/**
 * Parts of the machine's /etc that programs need and every user may read: libraries, certificates, time zone, alternatives. They are
 * mounted into sandboxes, so that sandboxes also see later changes.
 */
const fromHostEtc = [
  'alternatives',
  'ca-certificates',
  'crypto-policies',
  'ld.so.cache',
  'localtime',
  'pki/ca-trust',
  'pki/tls/certs',
  'ssl/certs',
  'ssl/openssl.cnf',
];

/** Text files and folders of the machine's /etc that rarely change. The worker copies them when it starts, and sandboxes see the copies. */
const copiedFromHostEtc = ['ca-certificates.conf', 'ld.so.conf', 'ld.so.conf.d', 'mime.types', 'protocols', 'services'];

/** A larger text file is not copied. */
const mostCopiedBytes = 1024 * 1024;

/** The machine's /etc. */
const hostEtc = '/etc';

/** `folder` is the folder that all sandboxes see as /etc. `places` are the paths in it at which parts of the machine's /etc are mounted. */
export interface SandboxEtc {
  readonly folder: string;
  readonly places: readonly string[];
}

/**
 * Makes the folder that is /etc in all sandboxes. It contains generated files, copies, and empty files and folders at which parts of
 * `source` are mounted. Mounting one folder is faster than mounting each file, because bwrap reads the table of all mounts after each
 * mount that it makes. An existing folder is never changed, because sandboxes of an earlier worker may still see it. If the contents
 * differ, a new folder is made.
 */
export async function writeEtc(stateRoot: string, source = hostEtc, usr = '/usr'): Promise<SandboxEtc> {
  const parent = path.join(stateRoot, 'etc');
  await mkdir(parent, { recursive: true });
  await chmod(parent, 0o755);
  const files = new Map(Object.entries(etcFiles));
  for (const name of copiedFromHostEtc) for (const [file, text] of await copyOf(source, name)) files.set(file, text);
  const isThere = (name: string) =>
    files.has(name) || fromHostEtc.some((place) => name === place || name.startsWith(`${place}/`));
  for (const [file, text] of await etcOfPrograms({ usr, etc: source, memory: path.join(parent, 'needed') }, isThere))
    files.set(file, text);
  const places = new Map<string, 'file' | 'folder'>();
  for (const name of fromHostEtc) {
    const found = await stat(path.join(source, name)).catch(() => undefined);
    if (found !== undefined) places.set(name, found.isDirectory() ? 'folder' : 'file');
  }
  const content = JSON.stringify([[...files], [...places]]);
  const folder = path.join(parent, createHash('sha256').update(content).digest('hex').slice(0, 16));
  const made = { folder, places: [...places.keys()] };
  if ((await stat(folder).catch(() => undefined)) !== undefined) return made;
  const making = await mkdtemp(path.join(parent, 'making-'));
  const readable = async (folder: string): Promise<void> => {
    if (folder !== making) await readable(path.dirname(folder));
    await makeFolder(folder, 0o755);
    // Sets the mode again, because the umask may have removed permissions from the new folder.
    await chmod(folder, 0o755);
  };
  for (const [name, kind] of places)
    if (kind === 'folder') await readable(path.join(making, name));
    else files.set(name, '');
  for (const [name, text] of files) {
    const file = path.join(making, name);
    await readable(path.dirname(file));
    await writeFile(file, text);
    await chmod(file, 0o644);
  }
  await rename(making, folder).catch(async (error: NodeJS.ErrnoException) => {
    await rm(making, { recursive: true });
    // These errors mean that another process has just made the same folder.
    if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
  });
  return made;
}

/**
 * Returns the text of a file or, if `name` is a folder, the texts of all files in this folder. Each text comes with the path of the file
 * below `source`. Leaves out unreadable files.
 */
async function copyOf(source: string, name: string): Promise<[string, string][]> {
  const place = path.join(source, name);
  const found = await stat(place).catch(() => undefined);
  if (found?.isDirectory()) {
    const names = await readdir(place).catch(() => []);
    const copies = names.toSorted().map((each) => copyOf(source, path.join(name, each)));
    return (await Promise.all(copies)).flat();
  }
  if (found?.isFile() !== true || found.size > mostCopiedBytes) return [];
  const text = await readFile(place, 'utf8').catch(() => undefined);
  return text === undefined ? [] : [[name, text]];
}

/**
 * Returns bwrap's options for the read-only files that all sandboxes of a worker share: the machine's programs and libraries, the programs
 * of `harnessDir`, and the generated /etc. The list is complete: other files of the machine do not exist inside the sandbox.
 */
export async function sharedFilesystem(etc: SandboxEtc, harnessDir?: string): Promise<string[]> {
  const options = await machinePrograms();
  if (harnessDir !== undefined) options.push('--ro-bind-try', harnessDir, harnessFolderInside);
  options.push('--ro-bind', etc.folder, '/etc');
  for (const name of etc.places) options.push('--ro-bind-try', path.join(hostEtc, name), `/etc/${name}`);
  return [...options, '--symlink', '/tmp', '/var/tmp', '--symlink', '/run', '/var/run'];
}

/** Returns bwrap's options for the machine's programs and libraries. */
export async function machinePrograms(): Promise<string[]> {
  const options = ['--ro-bind', '/usr', '/usr'];
  for (const name of ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']) {
    const found = await lstat(`/${name}`).catch(() => undefined);
    if (found?.isSymbolicLink()) options.push('--symlink', await readlink(`/${name}`), `/${name}`);
    else if (found !== undefined) options.push('--ro-bind', `/${name}`, `/${name}`);
  }
  return options;
}
