/**
 * Locks of the kernel on files (flock(2)). A lock belongs to an open file description. So the kernel releases it as soon as every process
 * with the descriptor has ended, for any reason. Other containers of the same machine, in which process ids mean nothing, also see the
 * lock.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

export interface FileLock {
  /** Descriptor of the locked file. Child processes that inherit the descriptor also hold the lock. */
  readonly fd: number;
  /** Releases the lock for this process. */
  release(): void;
}

/**
 * Takes the lock of `file`. Creates the file if it does not exist; the file must never be removed. Returns undefined if another process
 * holds the lock. Throws if the machine has no locks. Uses the flock command of util-linux or busybox, because Node has no flock.
 */
export function tryLockFile(file: string): FileLock | undefined {
  const fd = openSync(file, 'a', 0o600);
  const result = spawnSync('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd], encoding: 'utf8' });
  if (result.status === 0) return { fd, release: () => closeSync(fd) };
  closeSync(fd);
  if (result.status === 1) return undefined;
  const reason = result.error?.message ?? result.stderr.trim();
  throw new Error(
    `Cannot lock ${file}: ${reason}. Runyard needs the flock command (util-linux or busybox) and a file system with locks.`,
  );
}
