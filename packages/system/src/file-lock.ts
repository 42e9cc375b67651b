/**
 * Locks of the kernel on files (flock(2)). The kernel releases a lock as soon as every process with a descriptor of the lock has ended, for
 * any reason. Processes in other containers of the same machine also see the lock. A file with the holder's process id would not work
 * between containers.
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
 * holds the lock. Throws if the flock command is missing or the file system has no locks. Uses the flock command of util-linux or
 * busybox, because Node has no flock.
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
