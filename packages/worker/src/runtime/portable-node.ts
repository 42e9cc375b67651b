/**
 * Makes a Node that runs in containers whose image has no libraries or other libraries than this machine. It is a copy of this
 * machine's Node that loads copies of this machine's libraries from its own folder.
 *
 * The kernel starts a dynamic program with the interpreter that is named in the program's PT_INTERP segment (elf(5)). The interpreter
 * of glibc looks for libraries first in the folders of the tag DT_RPATH (ld.so(8)). So the copy gets a new interpreter path and a
 * DT_RPATH. Both strings fit into the bytes of the PT_INTERP segment. The tag DT_RPATH replaces the tag DT_DEBUG, which only debuggers
 * read. The interpreter could also start an unchanged Node as its argument. But then `process.execPath` would be the interpreter, and
 * `child_process.fork` would not work.
 */
import { existsSync } from 'node:fs';
import { chmod, constants, copyFile, link, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { agentNode } from './agent-program.ts';

/** Name of the interpreter, which is in the same folder as the program. */
const interpreterName = 'ld.so';

const programInterpreter = 3;
const loadSegment = 1;
const dynamicSegment = 2;
const tagNull = 0n;
const tagStrings = 5n;
const tagRpath = 15n;
const tagDebug = 21n;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: bigint;
  readonly bytes: number;
}

/** A change of a file: `bytes` replace the bytes at `offset`. */
export interface Change {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Returns the segments of a 64-bit little-endian ELF file. Throws if the file has another format. */
function segmentsOf(header: Buffer): Segment[] {
  const isElf = header.subarray(0, 6).equals(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]));
  if (!isElf) throw new Error('it is not a 64-bit little-endian ELF file');
  const table = Number(header.readBigUInt64LE(32));
  const size = header.readUInt16LE(54);
  const count = header.readUInt16LE(56);
  return Array.from({ length: count }, (_, n) => {
    const at = table + n * size;
    return {
      type: header.readUInt32LE(at),
      offset: Number(header.readBigUInt64LE(at + 8)),
      address: header.readBigUInt64LE(at + 16),
      bytes: Number(header.readBigUInt64LE(at + 32)),
    };
  });
}

class NotDynamic extends Error {}

/**
 * Returns the changes to a program file. The changed program starts with the interpreter `{folder}/ld.so` and loads libraries from its
 * own folder. `read` returns bytes of the program file. Throws if the program has no space for the new strings.
 */
export async function portableChanges(
  read: (offset: number, bytes: number) => Promise<Buffer>,
  folder: string,
): Promise<Change[]> {
  const segments = segmentsOf(await read(0, 4096));
  const find = (type: number) => segments.find((segment) => segment.type === type);
  const interpreter = find(programInterpreter);
  const dynamic = find(dynamicSegment);
  if (interpreter === undefined || dynamic === undefined) throw new NotDynamic('it is not a dynamic program');
  const first = `${folder}/${interpreterName}\0`;
  const strings = Buffer.alloc(interpreter.bytes);
  const text = `${first}$ORIGIN\0`;
  if (text.length > strings.length)
    throw new Error(`its interpreter has ${strings.length} bytes, and ${text.length} are needed`);
  strings.write(text, 'latin1');

  const table = await read(dynamic.offset, dynamic.bytes);
  let stringTable: bigint | undefined;
  let debug: number | undefined;
  for (let at = 0; at + 16 <= table.length && table.readBigUInt64LE(at) !== tagNull; at += 16) {
    const tag = table.readBigUInt64LE(at);
    if (tag === tagStrings) stringTable = table.readBigUInt64LE(at + 8);
    if (tag === tagDebug) debug = at;
  }
  const isLoaded = segments.some(
    ({ type, address, bytes }) =>
      type === loadSegment && address <= interpreter.address && interpreter.address < address + BigInt(bytes),
  );
  if (stringTable === undefined || debug === undefined || !isLoaded)
    throw new Error('its dynamic section has no room for a library folder');
  const entry = Buffer.alloc(16);
  entry.writeBigUInt64LE(tagRpath, 0);
  // The value is the distance from the string table to the second string. The distance is negative and is stored modulo 2^64, because the
  // interpreter's segment is before the string table.
  entry.writeBigUInt64LE(BigInt.asUintN(64, interpreter.address + BigInt(first.length) - stringTable), 8);
  return [
    { offset: interpreter.offset, bytes: strings },
    { offset: dynamic.offset + debug, bytes: entry },
  ];
}

/**
 * Copies the Node of this process and its libraries into a folder that containers see as `inside`. Adds a second copy of Node for the
 * agent; other users cannot read the file of this copy.
 */
export async function placePortableNode(folder: string, inside: string): Promise<void> {
  const ofAgent = path.join(folder, agentNode);
  await mkdir(path.dirname(ofAgent), { recursive: true, mode: 0o755 });
  const node = await copyNode(folder, inside);
  await copyFile(node, ofAgent, constants.COPYFILE_FICLONE);
  await chmod(ofAgent, 0o111);
  await placeLibraries([folder, path.dirname(ofAgent)], inside);
}

/** Copies the Node of this process and its libraries into a folder that containers see as `inside`. */
export async function placeOneNode(folder: string, inside: string): Promise<void> {
  await copyNode(folder, inside);
  await placeLibraries([folder], inside);
}

/**
 * Copies the shell of this machine, so that it uses the libraries beside it. A shell without an interpreter needs no libraries. The copy
 * cannot be read, like the agent's Node.
 */
export async function placePortableShell(shell: string, to: string, inside: string): Promise<void> {
  await copyFile(shell, to);
  await chmod(to, 0o755);
  await makePortable(to, inside).catch((error: Error) => {
    if (!(error.cause instanceof NotDynamic)) throw error;
  });
  await chmod(to, 0o111);
}

async function copyNode(folder: string, inside: string): Promise<string> {
  const node = path.join(folder, 'node');
  await copyFile(process.execPath, node, constants.COPYFILE_FICLONE);
  await makePortable(node, inside);
  await chmod(node, 0o755);
  return node;
}

/** Changes the program `file` so that it starts in every file system that contains its folder at the path `inside`. */
async function makePortable(file: string, inside: string): Promise<void> {
  const handle = await open(file, 'r+');
  try {
    const read = async (offset: number, bytes: number): Promise<Buffer> =>
      (await handle.read(Buffer.alloc(bytes), 0, bytes, offset)).buffer;
    for (const { offset, bytes } of await portableChanges(read, inside))
      await handle.write(bytes, 0, bytes.length, offset);
  } catch (error) {
    throw new Error(`the program ${file} cannot be used in containers: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    await handle.close();
  }
}

/** Returns the files of the interpreter and the libraries with which this process runs. */
function ownLibraries(): string[] {
  const { sharedObjects } = process.report.getReport() as { sharedObjects: string[] };
  return sharedObjects.filter((file) => file.startsWith('/') && /\.so(\.\d+)*$/.test(file));
}

/**
 * Files in /etc that make the interpreter and libc load further libraries into every program (ld.so(8), nsswitch.conf(5)). For each of
 * these paths, the copied libraries read a file of their own folder instead. The value is the name of that file. Reason: in a container,
 * /etc belongs to the image, and the image must not be able to load code into the agent.
 */
const ownFileFor: Readonly<Record<string, string>> = {
  // No file has this name, so no library is preloaded.
  '/etc/ld.so.preload': 'none',
  '/etc/nsswitch.conf': 'nss',
};
const nameSources = 'passwd: files\ngroup: files\nhosts: files dns\n';
/** Libraries that older versions of libc load to look up names. */
const nameLibraries = ['libnss_files.so.2', 'libnss_dns.so.2', 'libresolv.so.2'];

/** Returns the library after the paths of files in /etc were replaced by the paths of files in `inside`. */
function withOwnFiles(library: Buffer, inside: string): Buffer {
  for (const [name, own] of Object.entries(ownFileFor)) {
    const changed = Buffer.alloc(name.length);
    const length = changed.write(`${inside}/${own}`, 'latin1');
    if (length < inside.length + 1 + own.length) throw new Error(`${inside} is too long a path for ${name}`);
    const whole = `${name}\0`;
    for (let at = library.indexOf(whole); at !== -1; at = library.indexOf(whole)) changed.copy(library, at);
  }
  return library;
}

/**
 * Copies the interpreter and the libraries of this process into each folder, with the names under which the copied program looks for
 * them.
 */
async function placeLibraries(folders: readonly string[], inside: string): Promise<void> {
  const [one = '', ...others] = folders;
  const place = async (name: string, content: string | Buffer, mode: number): Promise<void> => {
    await writeFile(path.join(one, name), content);
    await chmod(path.join(one, name), mode);
    for (const other of others) await link(path.join(one, name), path.join(other, name));
  };
  const own = ownLibraries();
  const libc = own.find((library) => path.basename(library).startsWith('libc.'));
  const ofNames = libc === undefined ? [] : nameLibraries.map((name) => path.join(path.dirname(libc), name));
  const present = ofNames.filter((library) => existsSync(library) && !own.includes(library));
  for (const library of [...own, ...present]) {
    const name = path.basename(library);
    // The name of an interpreter depends on the architecture, but always begins with `ld-`. No library has such a name.
    const placed = /^ld-/.test(name) ? interpreterName : name;
    await place(placed, withOwnFiles(await readFile(library), inside), 0o755);
  }
  await place(ownFileFor['/etc/nsswitch.conf'] ?? '', nameSources, 0o644);
}
