/** Reads and stores the keys from `runyard login`. The data folder has one key for each service. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DataFolder } from './installation.ts';

export interface Login {
  /** UID of the key. */
  readonly uid: string;
  readonly key: string;
}

const fileOf = (folder: DataFolder): string => path.join(folder.path, 'logins.json');

/** Returns the logins by the origin of their service. Returns an empty map if the file is missing or damaged. */
function readLogins(folder: DataFolder): Map<string, Login> {
  try {
    const entries = Object.entries(JSON.parse(readFileSync(fileOf(folder), 'utf8')));
    return new Map(entries.filter((entry): entry is [string, Login] => isLogin(entry[1])));
  } catch {
    return new Map();
  }
}

const isLogin = (value: unknown): value is Login =>
  typeof value === 'object' &&
  value !== null &&
  'uid' in value &&
  typeof value.uid === 'string' &&
  'key' in value &&
  typeof value.key === 'string';

/** Returns the login at the service with this origin, or undefined if there is none. */
export const loginAt = (folder: DataFolder, origin: string): Login | undefined => readLogins(folder).get(origin);

/** Stores the login at a service in a file that only this user can read. `null` removes the login. */
export function keepLogin(folder: DataFolder, origin: string, login: Login | null): void {
  const logins = readLogins(folder);
  if (login === null) logins.delete(origin);
  else logins.set(origin, login);
  const file = fileOf(folder);
  if (logins.size === 0) {
    rmSync(file, { force: true });
    return;
  }
  mkdirSync(folder.path, { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `${JSON.stringify(Object.fromEntries(logins), null, 2)}\n`, { mode: 0o600 });
  renameSync(fresh, file);
}
