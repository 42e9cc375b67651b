/**
 * One lock file per data folder. Its lock belongs to an open file description (flock(2)) that the service holds and that
 * the server and all its processes inherit. So it is free exactly when the service and every PostgreSQL process of the
 * folder are gone, however they ended, also seen from another container on the same machine, where process ids mean
 * nothing. That is what PostgreSQL's own `postmaster.pid` cannot tell.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ProcessIdentity } from '../process-identity.ts';

export interface FolderLock {
  /** To be inherited by the server. */
  readonly fd: number;
  /** Gives up this process's part; the server's processes keep theirs while they live. */
  release(): void;
}

/** Returns undefined where somebody holds the lock. Node has no flock; util-linux and busybox have the command. */
export function tryLockFolder(folder: string): FolderLock | undefined {
  const fd = openSync(path.join(folder, 'lock'), 'a', 0o600);
  const result = spawnSync('flock', ['-x', '-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd], encoding: 'utf8' });
  if (result.status === 0) return { fd, release: () => closeSync(fd) };
  closeSync(fd);
  if (result.status === 1) return undefined;
  const reason = result.error?.message ?? result.stderr.trim();
  throw new Error(
    `Cannot lock ${folder}: ${reason}. The embedded PostgreSQL needs the flock command (util-linux) and a file system with locks.`,
  );
}

/** Who started the server of a folder, kept in the folder as `owner.json`. */
export interface Owner extends ProcessIdentity {
  readonly socketFolder: string;
}

export async function writeOwner(folder: string, owner: Owner): Promise<void> {
  const file = path.join(folder, 'owner.json');
  await writeFile(`${file}.new`, `${JSON.stringify(owner)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

export async function readOwner(folder: string): Promise<Owner | undefined> {
  try {
    return JSON.parse(await readFile(path.join(folder, 'owner.json'), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}
