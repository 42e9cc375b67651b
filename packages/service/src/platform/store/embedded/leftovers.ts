/** Takes the lock of a data folder. If a service has died and left PostgreSQL processes in the folder, stops them first. */
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FileLock } from '@runyard/system/file-lock';
import { stateOf } from '@runyard/system/process-identity';
import type { StoreLog } from '../database/log.ts';
import type { Account } from './account.ts';
import { type Owner, readOwner, tryLockFolder } from './folder-lock.ts';
import { stopLeftover, worksIn } from './guard.ts';
import { removeSocketFolder } from './socket-folder.ts';

/**
 * Time for a fast shutdown of a server whose service is dead. The guard of that server may have been killed too, so this process must
 * stop the server.
 */
const leftoverFastMs = 2_000;
/** If the lock is not free after this time, this process cannot stop the process that holds it. */
const lockTimeoutMs = 15_000;

/** Waits until the lock is free and takes it. If another service uses the folder, throws an error that names the process. */
export async function takeFolder(folder: string, cluster: string, account: Account, log: StoreLog): Promise<FileLock> {
  const giveUp = Date.now() + lockTimeoutMs;
  for (let tries = 0; ; tries += 1) {
    const lock = tryLockFolder(folder);
    if (lock !== undefined) return lock;
    const owner = await readOwner(folder);
    const state = owner === undefined ? 'gone' : stateOf(owner);
    if (owner !== undefined && state === 'alive') throw inUse(folder, `by process ${owner.pid}`);
    if (Date.now() > giveUp)
      throw inUse(folder, state === 'elsewhere' ? 'from another container' : 'by a process that could not be stopped');
    // Do not stop the server on the first try, because its guard may be stopping it.
    if (state === 'gone' && tries > 0) {
      if (tries === 1) log.warn({ folder }, 'an earlier service left its database running; stopping it');
      await stopServer(folder, cluster, account, owner);
    }
    await delay(20);
  }
}

function inUse(folder: string, who: string): Error {
  return new Error(
    `The database folder ${folder} is in use ${who}. Stop that one first, or use another RUNYARD_DATA_DIR.`,
  );
}

/**
 * Stops the postmaster, which is the first process of the server. The other processes of the server then end by themselves. A service
 * records its own process in `owner.json` before the service starts a server. So if this file still names the dead service, the pid file does not
 * belong to a newer server.
 */
async function stopServer(folder: string, cluster: string, account: Account, dead: Owner | undefined): Promise<void> {
  const pid = await postmasterPid(cluster);
  if (pid === undefined || !worksIn(pid, cluster, account)) return;
  const owner = await readOwner(folder);
  if (owner?.pid === dead?.pid && owner?.start_ticks === dead?.start_ticks)
    stopLeftover(pid, cluster, account, leftoverFastMs);
}

async function postmasterPid(cluster: string): Promise<number | undefined> {
  const text = await readFile(path.join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

/**
 * Deletes the socket folder and the pid file of a dead server. This process has the lock, so no server of the folder runs and a pid
 * file is stale. PostgreSQL itself detects a stale pid file only if no process has the old id. After a restart of a container, another
 * process may have this id, and PostgreSQL would refuse to start.
 */
export async function clearStale(folder: string, cluster: string, account: Account): Promise<void> {
  const owner = await readOwner(folder);
  if (owner !== undefined) await removeSocketFolder(owner.socketFolder);
  const pid = await postmasterPid(cluster);
  if (pid === undefined || !isAlive(pid)) return;
  if (worksIn(pid, cluster, account)) {
    throw inUse(folder, `by PostgreSQL process ${pid}, which was not started by Runyard`);
  }
  await rm(path.join(cluster, 'postmaster.pid'), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
