/** Takes the lock of a data folder, after it has stopped the processes of an earlier service. */
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

/** Time for the guard of a dead service to stop its server. The guard may have been killed too. */
const leftoverFastMs = 2_000;
/** After this time, the holder of the lock counts as a process that this process cannot stop. */
const lockTimeoutMs = 15_000;

/** Throws an error that names the process if another service uses the folder. */
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
    // On the first try, the server's guard may still be stopping it.
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
 * The other processes of the server end by themselves when their postmaster has ended. A service records itself as the owner before it
 * starts a server: if the owner is still the dead service, the pid file does not belong to a newer server.
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
 * While this process has the lock, no server of the folder runs, so a pid file is stale. PostgreSQL detects a stale pid file itself if
 * no process has the old id. After a restart of a container, another process may have this id. Then PostgreSQL would never start
 * again.
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
