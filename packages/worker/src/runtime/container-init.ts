import { chmod, copyFile, open } from 'node:fs/promises';
import path from 'node:path';

/**
 * Path of the first process of a container in a runtime folder. Like the agent's Node, its file is unreadable, so that a command of the run
 * cannot move its program into this process, which ends last. The file is missing if the machine has no init that runs in every image.
 */
export const containerInit = 'agent/init';

/** Folders in which packages of container engines put their init. */
const folders = ['/usr/bin', '/usr/libexec/docker', '/usr/lib/docker', '/usr/local/bin', '/usr/local/libexec/docker'];

/** Copies the init of the container engine into a runtime folder. Returns false if there is none without libraries. */
export async function placeContainerInit(runtime: string): Promise<boolean> {
  const to = path.join(runtime, containerInit);
  for (const folder of folders) {
    const file = path.join(folder, 'docker-init');
    if (!(await isStatic(file).catch(() => false))) continue;
    await copyFile(file, to);
    await chmod(to, 0o111);
    return true;
  }
  return false;
}

/** Segment of a program that names its interpreter, which loads libraries (elf(5)). */
const interpreterSegment = 3;

/** Returns whether a file is a program of 64 bits that needs no libraries. Rejects if the file cannot be read. */
async function isStatic(file: string): Promise<boolean> {
  const program = await open(file);
  try {
    const head = Buffer.alloc(64);
    await program.read(head, 0, head.length, 0);
    if (head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2) return false;
    const [size, count] = [head.readUInt16LE(54), head.readUInt16LE(56)];
    const segments = Buffer.alloc(size * count);
    await program.read(segments, 0, segments.length, Number(head.readBigUInt64LE(32)));
    for (let at = 0; at < segments.length; at += size)
      if (segments.readUInt32LE(at) === interpreterSegment) return false;
    return true;
  } finally {
    await program.close();
  }
}
