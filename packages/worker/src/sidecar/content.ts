/**
 * Returns the files of the sidecar image. Other workers, such as oz-agent-worker, mount these files at /agent in containers of any image.
 */
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundleProgram } from '../runtime/bundle.ts';
import { placeOneNode } from '../runtime/portable-node.ts';
import { agentCommands } from '../runtime/runtime.ts';
import type { TarEntry } from './archive.ts';

/** Path at which a container sees the files of the sidecar image. */
export const mountedAt = '/agent';

export interface ContentRequest {
  /** Folder of the checkout. */
  readonly root: string;
  /** Main file of the agent. Default: the file in the checkout. */
  readonly entry?: string;
  /**
   * Path of a statically linked BusyBox. BusyBox provides the shell in containers whose image has no shell, and the `tar` with which
   * workers copy the sidecar image.
   */
  readonly busybox: string;
  /**
   * True if all users may read the file of Node. gVisor needs this to start Node for users other than root. But then commands of the
   * run can read the agent's memory.
   */
  readonly readableNode: boolean;
}

/** Returns the files of the image. They are sorted, so that equal checkouts have equal images. */
export async function sidecarContent(request: ContentRequest): Promise<TarEntry[]> {
  const { root, entry = path.join(root, 'packages/agent/src/main.ts'), busybox, readableNode } = request;
  const bundle = await bundleProgram(entry);
  const files: TarEntry[] = [];
  const add = (name: string, bytes: Uint8Array, mode = 0o644): void => {
    files.push({ name, mode, content: { bytes } });
  };
  const link = (name: string, to: string): void => {
    files.push({ name, mode: 0o777, content: { link: to } });
  };
  const here = (name: string): Promise<Buffer> => readFile(path.join(import.meta.dirname, name));
  add('entrypoint.sh', await here('entrypoint.sh'), 0o755);
  for (const file of bundle.files) add(`program/${file.name}`, file.bytes);
  for (const name of agentCommands) add(`commands/${name}`, Buffer.from(commandScript(name)), 0o755);
  for (const [name, bytes] of await portableNode()) add(name, bytes, name === 'node' && !readableNode ? 0o111 : 0o755);
  add('bin/busybox', await staticProgram(busybox), 0o755);
  add('bin/sh', await here('sh.sh'), 0o755);
  add('bin/tar', await here('tar.sh'), 0o755);
  // A worker copies the image as the user root, and the engine looks up this user in the file etc/passwd.
  add('etc/passwd', Buffer.from('root:x:0:0:root:/:/bin/sh\n'));
  add('etc/group', Buffer.from('root:x:0:\n'));
  // This link lets the programs also run in the image itself, where /agent is not mounted.
  link('agent', '.');
  for (const [name, bytes] of await licences(root, bundle.inputs)) add(`licences/${name}`, bytes);
  const folders = new Set(files.flatMap(({ name }) => foldersOf(name)));
  const entries = [...files, ...[...folders].map((name): TarEntry => ({ name, mode: 0o755, content: 'folder' }))];
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns the folders above a file, each with `/` at its end. */
const foldersOf = (name: string): string[] => [...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index + 1));

const commandScript = (name: string): string =>
  `#!${mountedAt}/bin/busybox sh\nexec ${mountedAt}/node ${mountedAt}/program/main.cjs ${name} "$@"\n`;

/** Returns a Node with its libraries that needs no file of the container's image. */
async function portableNode(): Promise<[string, Buffer][]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-sidecar-'));
  try {
    await placeOneNode(folder, mountedAt);
    const names = await readdir(folder);
    return await Promise.all(
      names.map(async (name): Promise<[string, Buffer]> => [name, await readFile(path.join(folder, name))]),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Type of the ELF segment that names the interpreter of a dynamically linked program. */
const interpreterSegment = 3;

/** Returns the bytes of a statically linked program. Rejects if the file is missing or the program is dynamically linked. */
async function staticProgram(file: string): Promise<Buffer> {
  const advice = 'install a static BusyBox (Debian, Ubuntu: package busybox-static), or name one with --busybox';
  const bytes = await readFile(file).catch((error: Error) => {
    throw new Error(`${error.message}: ${advice}`, { cause: error });
  });
  const at = Number(bytes.readBigUInt64LE(32));
  const types = Array.from({ length: bytes.readUInt16LE(56) }, (_, n) =>
    bytes.readUInt32LE(at + n * bytes.readUInt16LE(54)),
  );
  if (types.includes(interpreterSegment)) throw new Error(`${file} needs libraries: ${advice}`);
  return bytes;
}

/**
 * Returns the licence texts of all parts of the image, with their paths in the image. Skips parts whose licence text is not on this
 * machine.
 */
async function licences(root: string, inputs: readonly string[]): Promise<[string, Buffer][]> {
  const folders = new Set<string>();
  for (const input of inputs) {
    const [, folder] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const node = path.resolve(process.execPath, '../..');
  const found: [string, Buffer][] = [];
  for (const folder of [root, node, ...folders]) {
    const name = folder === root ? 'runyard' : folder === node ? 'node' : folder.split('/node_modules/').at(-1);
    for (const file of await readdir(folder).catch(() => []))
      if (/^(licen[cs]e|notice|copying)/i.test(file) && (await stat(path.join(folder, file))).isFile())
        found.push([`${name?.replace('/', '-')}/${file}`, await readFile(path.join(folder, file))]);
  }
  for (const name of ['busybox-static', 'libc6', 'libstdc++6', 'libgcc-s1']) {
    const text = await readFile(`/usr/share/doc/${name}/copyright`).catch(() => undefined);
    if (text !== undefined) found.push([`${name}/copyright`, text]);
  }
  return found;
}
