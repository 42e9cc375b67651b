/**
 * Creates the folder of the server's Unix socket. This folder alone controls access to the embedded server, which listens nowhere
 * else: only the server's account and root can enter the folder. Each start creates a folder with a new random name, so another user
 * cannot create it first. The folder is not inside the data folder, because the path of a socket may have only 107 bytes (sun_path in
 * unix(7)).
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
 * Returns the folders in which the socket folder may be, the preferred one first. That is the folder that systemd made for the unit
 * (`RuntimeDirectory=`), because the unit has a /tmp of its own, which commands outside of the unit do not see. Root prefers /run, because programs that delete old
 * temporary files do not look there. XDG_RUNTIME_DIR of a user is not used, because the system deletes it when the user logs out.
 */
function parents(): string[] {
  const ofUnit = process.env.RUNTIME_DIRECTORY;
  return [
    ...(ofUnit === undefined ? [] : [ofUnit]),
    ...(process.getuid?.() === 0 ? ['/run', '/tmp'] : [tmpdir(), '/tmp']),
  ];
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

/** Removes old empty socket folders. Such a folder stays if the guard stopped the server and no later service has used the same data folder. */
async function sweepEmpty(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const folder = path.join(parent, name);
    const found = await lstat(folder).catch(() => undefined);
    // `rmdir` fails for a folder that is not empty, so a socket in use stays.
    if (found?.isDirectory() && found.mtimeMs < Date.now() - emptyForMs) await rmdir(folder).catch(() => undefined);
  }
}

/** Removes a folder that `makeSocketFolder` created, and nothing else. */
export async function removeSocketFolder(folder: string): Promise<void> {
  if (!path.basename(folder).startsWith(prefix) || !(await lstat(folder).catch(() => undefined))?.isDirectory()) return;
  await rm(folder, { recursive: true, force: true });
}
