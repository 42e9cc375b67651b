/**
 * One lock file per data folder. Its lock belongs to an open file description (flock(2)) that the service holds and that
 * the server and all its processes inherit. So it is free exactly when the service and every PostgreSQL process of the
 * folder are gone, however they ended, also seen from another container on the same machine, where process ids mean
 * nothing. That is what PostgreSQL's own `postmaster.pid` cannot tell.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

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
export interface Owner {
  readonly pid: number;
  /** Start of that process in clock ticks since boot: a later process with the same id has another one. */
  readonly startedAt: string;
  /** The pid is only meaningful within this namespace. */
  readonly pidNamespace: string;
  readonly socketFolder: string;
}

export function thisProcess(socketFolder: string): Owner {
  return {
    pid: process.pid,
    startedAt: startOf(process.pid) ?? '',
    pidNamespace: readlinkSync('/proc/self/ns/pid'),
    socketFolder,
  };
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

export type OwnerState = 'alive' | 'gone' | 'elsewhere';

/** `elsewhere`: another container, whose processes cannot be seen from here. */
export function stateOf(owner: Owner): OwnerState {
  if (owner.pidNamespace !== readlinkSync('/proc/self/ns/pid')) return 'elsewhere';
  return startOf(owner.pid) === owner.startedAt ? 'alive' : 'gone';
}

/** Field 22 of /proc/PID/stat, counted after the command's name, which may hold spaces and brackets (proc(5)). */
function startOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
