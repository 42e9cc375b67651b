/**
 * Makes disks of a fixed size for sandboxes. Each disk is a file system in a sparse file. The kernel enforces the size, also for deleted
 * and memory-mapped files.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rm, rmdir, stat, statfs } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type DiskTemplate, readTemplate, writeTemplate } from './disk-template.ts';
import { makeFolder } from './make-folder.ts';
import { runInShell } from './mount-shell.ts';

const run = promisify(execFile);
const options = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }, timeout: 30_000 };
const megabyte = 1024 * 1024;

/** Whether such disk images work on this machine, and if not, why. */
export type ImageSupport = { ok: true } | { ok: false; reason: string };

/**
 * Returns the size of the image for a limit. The image is larger than the limit: it has space for the tables of the file system, and
 * for data that is written between two measurements of the disk watch. So the watch can end the sandbox with a reason before the disk
 * is full.
 */
function imageBytes(limitMb: number): number {
  return Math.ceil(limitMb * 1.1 + 32) * megabyte;
}

/** Templates of images by size. A template is read from a new image, so it contains no data of sandboxes. */
const templates = new Map<number, DiskTemplate>();
/** Maximum number of templates that are kept. This is enough for the limit of the worker and for a few lower limits of environments. */
const mostTemplates = 4;

/** Creates an empty file system in `file` and mounts it on the folder. If a step fails, undoes all earlier steps. */
export async function mountImage(file: string, folder: string, limitMb: number): Promise<void> {
  const size = imageBytes(limitMb);
  const handle = await open(file, 'wx', 0o600);
  try {
    const template = templates.get(size);
    try {
      await handle.truncate(size);
      if (template !== undefined) await writeTemplate(handle, template);
    } finally {
      await handle.close();
    }
    if (template === undefined) await makeFileSystem(file, size);
    await mountFile(file, folder);
    await rmdir(path.join(folder, 'lost+found'));
  } catch (error) {
    await unmountImage(file, folder);
    throw error;
  }
}

/** Options of each mount of a disk. */
export const diskOptions = 'nosuid,nodev,noatime';

/** Mounts a file with a file system on the folder. Sandboxes that have a part of this folder get the mounts that are made in it later. */
export async function mountFile(file: string, folder: string): Promise<void> {
  // discard: the machine gets the space of deleted files back. barrier=0: writes do not wait for the disk of the machine.
  const mode = `loop,${diskOptions},discard,noinit_itable,barrier=0`;
  // `-t` and `-i` save time: `mount` does not have to detect the kind of the file system and does not search for a helper program.
  const command = ['mount', '-i', '-n', '-t', 'ext4', '-o', mode, '--make-shared', '--', file, folder];
  await setMounted(folder, true, command);
}

/** Creates a file system with `mkfs.ext4`, and keeps the template of its size. */
async function makeFileSystem(file: string, size: number): Promise<void> {
  // The file system has no journal, no copies of its tables and no space to grow, because the disk is not used after a crash. It has
  // one inode for each 8 KB. It has no UUID, because disks from the same template would have the same UUID and so the same name in
  // /dev/disk/by-uuid.
  const features = ['-U', 'clear', '-O', '^has_journal,^resize_inode,sparse_super2', '-m', '0', '-i', '8192'];
  const extended = ['-E', 'lazy_itable_init=1,nodiscard,num_backup_sb=0,root_owner=0:0'];
  await run('mkfs.ext4', ['-q', '-F', ...features, ...extended, file], options);
  const template = templates.size < mostTemplates ? await readTemplate(file) : undefined;
  if (template !== undefined) templates.set(size, template);
}

/** Unmounts the folder and removes the image, if they exist. */
export async function unmountImage(file: string, folder: string): Promise<void> {
  if (await isMounted(folder)) await unmount(folder);
  await rm(file, { force: true });
}

/** Returns true if the folder exists and is a mount point. */
export async function isMounted(folder: string): Promise<boolean> {
  const [own, above] = await Promise.all([folder, path.dirname(folder)].map((at) => stat(at).catch(() => undefined)));
  return own !== undefined && own.dev !== above?.dev;
}

/**
 * Mounts or unmounts the folder with the command. If the shell ends before it reports the result, checks whether the command has worked,
 * and if not, tries once more.
 */
async function setMounted(folder: string, wanted: boolean, command: readonly string[]): Promise<void> {
  let result = await runInShell(command);
  if (result.type === 'lost') {
    if ((await isMounted(folder)) === wanted) return;
    result = await runInShell(command);
  }
  if (result.type === 'done') return;
  const reason = result.type === 'lost' ? 'its shell was killed' : result.output;
  const error: NodeJS.ErrnoException = new Error(`${command[0]} failed: ${reason}`);
  // 127 is the exit code of a shell if the program does not exist.
  if (result.type === 'failed' && result.status === 127) error.code = 'ENOENT';
  throw error;
}

/** Unmounts everything that a killed process left mounted below the folder, except on the folders in `kept` and below them. */
export async function unmountBelow(folder: string, kept: ReadonlySet<string> = new Set()): Promise<void> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  // Begins with the newest mounts, because a mount ends together with the mount that contains its folder.
  for (const line of mounts.split('\n').reverse()) {
    // proc(5): field 5 is the mount point; a space in it is written as \040.
    const point = line
      .split(' ')[4]
      ?.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
    if (point === undefined || !isBelow(point, folder)) continue;
    if (![...kept].some((each) => point === each || isBelow(point, each))) await unmount(point);
  }
}

const isBelow = (point: string, folder: string): boolean => point.startsWith(`${folder}/`);

/** Unmounts lazily, because a sandbox that is just starting may have a copy of all mounts of the machine for a moment. */
export async function unmount(point: string): Promise<void> {
  await setMounted(point, false, ['umount', '-l', '--', point]);
}

/** Returns the bytes in use on the file system that is mounted on the folder, including data that the kernel has not written yet. */
export async function usedOnFileSystem(folder: string): Promise<number> {
  const { blocks, bfree, bsize } = await statfs(folder);
  return (blocks - bfree) * bsize;
}

/** Tests whether images work below the folder. */
export async function probeImages(stateRoot: string): Promise<ImageSupport> {
  if (process.getuid?.() !== 0) return { ok: false, reason: 'only root can mount a file system per sandbox' };
  // Uses the trash folder, because the next worker empties it if this worker is killed during the test.
  const trash = path.join(stateRoot, 'trash');
  await makeFolder(trash, 0o700);
  const place = await mkdtemp(path.join(trash, 'disk-probe-'));
  const [file, folder] = [path.join(place, 'image'), path.join(place, 'mounted')];
  try {
    await mkdir(folder);
    await mountImage(file, folder, 16);
    await unmountImage(file, folder);
    return { ok: true };
  } catch (error) {
    const [said = ''] = (error as Error).message.split('\n').slice(-2).filter(Boolean);
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = missing ? 'mkfs.ext4 or mount is not installed (package e2fsprogs)' : said.trim();
    return { ok: false, reason: `a file system per sandbox cannot be mounted here: ${reason}` };
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}
