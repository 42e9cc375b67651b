/** A file system of a few megabytes that a test can fill for real. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface SmallDisk {
  readonly folder: string;
  /** Writes a file until the disk is full. */
  fill(): void;
  /** Removes the file that `fill` wrote. */
  free(): void;
  /** Unmounts the disk and removes its content. */
  remove(): Promise<void>;
}

/** Null if this user may mount file systems; otherwise the reason, for the name of a skipped test. */
export const smallDiskProblem: string | null = (() => {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', '/mnt'], { stdio: 'pipe' });
    return process.getuid?.() === 0 ? null : 'only root can mount a small disk';
  } catch {
    return 'no small disk can be mounted here';
  }
})();

/** Mounts a tmpfs of `megabytes`. The caller removes it. */
export async function makeSmallDisk(megabytes: number): Promise<SmallDisk> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'none', folder]);
  const filling = path.join(folder, 'filling');
  return {
    folder,
    fill() {
      const file = openSync(filling, 'a');
      try {
        // At the end, write single pages until the file system has no free page.
        for (const size of [1024 * 1024, 4096]) writeUntilFull(file, Buffer.alloc(size));
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(filling, { force: true }),
    async remove() {
      execFileSync('umount', ['--lazy', folder]);
      await rmdir(folder);
    },
  };
}

function writeUntilFull(file: number, bytes: Buffer): void {
  for (;;) {
    try {
      if (writeSync(file, bytes) < bytes.byteLength) return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
      throw error;
    }
  }
}
