/**
 * Makes one folder for all temporary files of a test run, and removes the folder at the end of the run. Test processes cannot remove
 * their files at their exit, because Vitest kills them after their last test file. If a test run is killed, the next test run removes
 * its folder.
 */
import { readFileSync, statfsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import path from 'node:path';
import { stateOf, thisProcess } from '@runyard/system/process-identity';
import { unmountBelow } from '../../packages/worker/src/state/disk-image.ts';

const prefix = 'ry-';
/** Name of a file in the folder of a test run. The file identifies the process of the test run. */
const ownerFile = 'test-run';

/** Linux's file system in memory. */
const inMemory = '/dev/shm';
const gigabyte = 2 ** 30;

/**
 * Returns where test runs put their folders: `TMPDIR`, or else a file system in memory with enough space, or else the temporary folder
 * of the system. In memory, the databases and sandboxes of the tests do not wait for a disk, and the kernel needs half of the
 * processor time.
 */
export function placeOfRuns(): string {
  if (process.env.TMPDIR !== undefined) return tmpdir();
  try {
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .findLast(([, at]) => at === inMemory);
    const { bavail, bsize } = statfsSync(inMemory);
    const holdsPrograms = mount?.[2] === 'tmpfs' && !/\b(ro|noexec)\b/.test(mount[3] ?? '');
    // The files of the tests need at most 2 GB of this file system. The rest of the required memory is for the programs of the tests.
    return holdsPrograms && bavail * bsize > 6 * gigabyte && freemem() > 10 * gigabyte ? inMemory : tmpdir();
  } catch {
    return tmpdir();
  }
}

export async function setup(): Promise<() => Promise<void>> {
  const outer = process.env.TMPDIR;
  const place = placeOfRuns();
  await removeFoldersOfDeadRuns(place);
  // The name is short, because the path of a Unix socket has at most 107 bytes.
  const folder = await mkdtemp(path.join(place, prefix));
  await writeFile(path.join(folder, ownerFile), JSON.stringify(thisProcess()));
  // Other users must be able to enter the folder: PostgreSQL and the programs in sandboxes have user ids of their own.
  await chmod(folder, 0o1777);
  process.env.TMPDIR = folder;
  return async () => {
    if (outer === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = outer;
    await removeFolder(folder);
  };
}

async function removeFolder(folder: string): Promise<void> {
  // Do not retry: if a failed test has left a mounted folder, `rm` would retry on each level of folders, and again on all levels
  // below.
  await rm(folder, { recursive: true, force: true }).catch((error: Error) => {
    process.stderr.write(`temporary files of the tests are left in ${folder}: ${error.message}\n`);
  });
}

/** Removes the folders in `place` of test runs whose process no longer exists, and unmounts disks in these folders. */
export async function removeFoldersOfDeadRuns(place: string): Promise<void> {
  for (const name of await readdir(place)) {
    if (!name.startsWith(prefix)) continue;
    const folder = path.join(place, name);
    const owner = await readFile(path.join(folder, ownerFile), 'utf8').catch(() => '');
    if (owner === '' || stateOf(JSON.parse(owner)) !== 'gone') continue;
    await unmountBelow(folder).catch(() => undefined);
    await removeFolder(folder);
  }
}
