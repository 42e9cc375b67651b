/**
 * Locks of the kernel on files (flock(2)). The lock belongs to an open file description: it is free exactly when every process
 * that holds the descriptor is gone, however it ended, also seen from another container on the same machine, where process
 * ids mean nothing.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';

export interface FileLock {
  /** Children that inherit it hold the lock too. */
  readonly fd: number;
  /** Gives up this process's part of the lock. */
  release(): void;
}

/**
 * Takes the lock of `file`, which is made where it does not exist and must never be removed. Returns undefined where
 * another process holds it; throws where there are no locks. Node has no flock; util-linux and busybox have the command.
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
