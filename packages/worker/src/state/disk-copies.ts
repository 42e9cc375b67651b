/** Copies the disk of a sandbox while the sandbox runs, and gives a sandbox the files of such a copy. */
import { lstat, mkdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { diskOptions, isMounted, mountFile, unmount } from './disk-image.ts';
import { runInShell } from './mount-shell.ts';
import { type SandboxPlaces, writableFolders } from './sandbox-places.ts';

/** Longest time to copy a disk, or to change the owner of its files. */
const longestMs = 600_000;
const inUseStatus = 75;

/** The copy is not a disk of a sandbox. */
export class DamagedCopy extends Error {
  override readonly name = 'DamagedCopy';
}

/**
 * Copies the disk of a sandbox into a new file. The disk is read-only while it is copied. So the copy is a whole file system, and a
 * process that the worker does not know can change nothing in it. Returns `in_use` and copies nothing if a file of the disk is open for
 * writing.
 */
export async function copyDisk({ image, top }: SandboxPlaces, copy: string): Promise<'copied' | 'in_use'> {
  const remount = `mount -i -n -o "remount,$1,${diskOptions}" -- "$top"`;
  // The shell of `runInShell` finishes its command even if this process is killed. So the disk becomes writable again. A frozen file
  // system (fsfreeze) is not used instead of a read-only one, because processes that write to it could not be killed.
  const script = [
    `top=$2; set -- ro "$@"; ${remount} || exit ${inUseStatus}`,
    'cp --reflink=auto -- "$2" "$4"; status=$?',
    `set -- rw; ${remount} || exit 1`,
    'exit "$status"',
  ].join('\n');
  const result = await runInShell(['sh', '-c', script, 'copy', image, top, copy], longestMs);
  if (result.type === 'done') return 'copied';
  await rm(copy, { force: true });
  if (result.type === 'failed' && result.status === inUseStatus) return 'in_use';
  if (await isMounted(top)) await command(['sh', '-c', `top=$2; ${remount}`, 'again', 'rw', top]);
  throw new Error(result.type === 'lost' ? 'the shell that copied the disk was killed' : result.output);
}

/**
 * Replaces the writable folders of a running sandbox by those of a copy. The sandbox gets a copy of its own, and its user owns all
 * files. Processes that have entered a folder before must enter it again. `place` is an empty folder that the next worker removes if this
 * process is killed. Throws `DamagedCopy` if the copy cannot be used.
 */
export async function useDiskCopy(copy: string, to: SandboxPlaces, place: string): Promise<void> {
  const [file, folder] = [path.join(place, 'image'), path.join(place, 'disk')];
  const names = await writableFolders(to.top);
  const { uid } = await stat(to.workspace);
  await mkdir(folder);
  try {
    await command(['cp', '--reflink=auto', '--', copy, file]);
    await mountFile(file, folder).catch((error: Error) => {
      throw new DamagedCopy(error.message, { cause: error });
    });
    for (const name of names)
      if ((await lstat(path.join(folder, name)).catch(() => undefined))?.isDirectory() !== true)
        throw new DamagedCopy(`it has no ${name}`);
    await command(['chown', '-hR', `${uid}:${uid}`, '--', ...names.map((name) => path.join(folder, name))]);
    // The mounts also appear in the running sandbox (mount_namespaces(7), "Shared subtrees"). One command makes all of them or none:
    // it finishes even if this process is killed, and the next worker may unmount `folder` in the middle.
    const undo = 'for name; do umount -n -l -- "$to/$name"; done; exit 1';
    const script = `from=$1; to=$2; shift 2; for name; do mount -n --bind -- "$from/$name" "$to/$name" || { ${undo}; }; done`;
    await command(['sh', '-c', script, 'bind', folder, to.top, ...names]);
  } catch (error) {
    for (const name of names) if (await isMounted(path.join(to.top, name))) await unmount(path.join(to.top, name));
    throw error;
  } finally {
    if (await isMounted(folder)) await unmount(folder);
    // The mounts keep the image until the sandbox ends.
    await rm(file, { force: true });
  }
}

async function command(words: readonly string[]): Promise<void> {
  const result = await runInShell(words, longestMs);
  if (result.type === 'done') return;
  throw new Error(`${words[0]} failed: ${result.type === 'lost' ? 'its shell was killed' : result.output}`);
}
