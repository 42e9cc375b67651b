/**
 * Locks a data folder with a lock file. The service holds the lock, and all processes of the PostgreSQL server inherit it. So the lock
 * is free only after the service and all PostgreSQL processes of the folder have ended. PostgreSQL's own file `postmaster.pid` cannot
 * show that.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type FileLock, tryLockFile } from '@runyard/system/file-lock';
import type { ProcessIdentity } from '@runyard/system/process-identity';

/** Takes the lock of a server's folder. Returns undefined if another process holds the lock. */
export function tryLockFolder(folder: string): FileLock | undefined {
  return tryLockFile(path.join(folder, 'lock'));
}

/** The process that started the server of a folder, stored in the folder as `owner.json`. */
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
