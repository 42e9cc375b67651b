/**
 * The folder of the server's Unix socket. Each start creates a new folder: no other user can guess its name and create it first, and only
 * the server's account and root can enter it. Only this folder controls access to the embedded server, which listens nowhere else. It is
 * not inside the data folder, because the path of a socket may have only 107 bytes (sun_path in unix(7)).
 */
import { chown, lstat, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Account } from './account.ts';

const prefix = 'runyard-pg-';
const maxSocketPathBytes = 107;
const socketName = '.s.PGSQL.5432';
const emptyForMs = 10 * 60_000;

/**
 * /run is first for root, because no cleaner of temporary files looks there. A user's own XDG_RUNTIME_DIR is deleted when the user logs
 * out.
 */
function parents(): string[] {
  return process.getuid?.() === 0 ? ['/run', '/tmp'] : [tmpdir(), '/tmp'];
}

export async function makeSocketFolder(account: Account): Promise<string> {
  let problem: unknown;
  for (const parent of parents()) {
    await sweepEmpty(parent);
    const length = Buffer.byteLength(path.join(parent, `${prefix}XXXXXX`, socketName));
    if (length > maxSocketPathBytes) continue;
    try {
      const folder = await mkdtemp(path.join(parent, prefix));
      if (account.uid !== process.getuid?.()) await chown(folder, account.uid, account.gid);
      return folder;
    } catch (error) {
      problem = error;
    }
  }
  throw new Error(`No folder for the database's socket: neither of ${parents().join(', ')} can be written`, {
    cause: problem,
  });
}

/** If the guard stopped the server, an empty folder stays, and the next start with the same data removes it. */
async function sweepEmpty(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const folder = path.join(parent, name);
    const found = await lstat(folder).catch(() => undefined);
    // rmdir removes only empty folders.
    if (found?.isDirectory() && found.mtimeMs < Date.now() - emptyForMs) await rmdir(folder).catch(() => undefined);
  }
}

/** Removes a folder that `makeSocketFolder` created, and nothing else. */
export async function removeSocketFolder(folder: string): Promise<void> {
  if (!path.basename(folder).startsWith(prefix) || !(await lstat(folder).catch(() => undefined))?.isDirectory()) return;
  await rm(folder, { recursive: true, force: true });
}
