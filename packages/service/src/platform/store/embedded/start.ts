/** The embedded PostgreSQL: a real server that belongs to this process and to one data folder. */
import path from 'node:path';
import { stateOf, thisProcess } from '@runyard/system/process-identity';
import type { StoreLog } from '../database/log.ts';
import { chooseAccount } from './account.ts';
import { copyPlaces, locateBinaries, prepareBinaries } from './binaries.ts';
import { ensureCluster, ensureFolder, superuser } from './cluster.ts';
import { readOwner, writeOwner } from './folder-lock.ts';
import { keepRunning } from './keep-running.ts';
import { clearStale, takeFolder } from './leftovers.ts';
import { startPostmaster } from './postmaster.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';

/** Address of the server: for `pg`, and as a URL for a setting. */
export interface EmbeddedConnection {
  /** Folder of the Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface EmbeddedPostgres {
  readonly connection: EmbeddedConnection;
  readonly url: string;
  /** Returns why the server does not run now; null if it runs. */
  problem(): string | null;
  /** Resolves when the server has ended. Fast shutdown: open transactions are rolled back, and a checkpoint is written. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Folder for this server only; created if it does not exist. The parents of the folder may be closed to others. */
  readonly dataDir: string;
  readonly log: StoreLog;
}

/**
 * Starts the server and resolves when it answers. The server lives as long as this process. `stop` stops it; if this process ends in any
 * other way, its guard stops it; if it ends by itself, it is started again. Throws an error that names the process if another one uses the
 * folder, and throws if PostgreSQL cannot run.
 */
export async function startEmbeddedPostgres({ dataDir, log }: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const folder = path.resolve(dataDir);
  const clusterFolder = path.join(folder, 'cluster');
  await ensureFolder(folder);
  const account = await chooseAccount(clusterFolder);
  const native = await prepareBinaries(await locateBinaries(), account, copyPlaces(folder));
  const lock = await takeFolder(folder, clusterFolder, account, log);
  let socketFolder: string | undefined;
  try {
    await clearStale(folder, clusterFolder, account);
    socketFolder = await makeSocketFolder(account);
    await writeOwner(folder, { ...thisProcess(), socketFolder });
    const cluster = await ensureCluster(folder, native, account);
    const options = { native, cluster, account, socketFolder, lockFd: lock.fd, log };
    const keptServer = keepRunning(await startPostmaster(options), () => startPostmaster(options), log);
    const made = socketFolder;
    const stopAll = async () => {
      await keptServer.stop();
      await removeSocketFolder(made);
      lock.release();
    };
    let stopped: Promise<void> | undefined;
    return {
      ...addressOf(made),
      problem: keptServer.problem,
      stop: () => {
        stopped ??= stopAll();
        return stopped;
      },
    };
  } catch (error) {
    if (socketFolder !== undefined) await removeSocketFolder(socketFolder);
    lock.release();
    throw error;
  }
}

/** Returns the running server of a folder, for a second program of the same user (an export); undefined if no server runs. */
export async function findEmbeddedPostgres(
  dataDir: string,
): Promise<Pick<EmbeddedPostgres, 'connection' | 'url'> | undefined> {
  const owner = await readOwner(path.resolve(dataDir));
  return owner !== undefined && stateOf(owner) === 'alive' ? addressOf(owner.socketFolder) : undefined;
}

function addressOf(socketFolder: string): Pick<EmbeddedPostgres, 'connection' | 'url'> {
  return {
    connection: { host: socketFolder, port: 5432, user: superuser, database: 'postgres' },
    url: `postgresql://${superuser}@localhost:5432/postgres?host=${encodeURIComponent(socketFolder)}`,
  };
}
