/** Starts the embedded PostgreSQL: a real server that belongs to this process and to one data folder. */
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

/** Address of the server, in the form that `pg` takes. */
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
  /** Resolves when the server has ended. Stops the server with a fast shutdown, which rolls back open transactions and writes a checkpoint. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Folder that only this server uses. It is created if it does not exist. The server's account does not need access to its parent folders. */
  readonly dataDir: string;
  readonly log: StoreLog;
  /** Connections that the server accepts at the same time. Default: 100. */
  readonly maxConnections?: number;
}

/**
 * Starts the server and resolves when it answers. If the server ends by itself, it is started again. If this process ends without
 * calling `stop`, the guard of the server stops it. If another process uses the folder, throws an error that names this process. Also
 * throws if PostgreSQL cannot run.
 */
export async function startEmbeddedPostgres({
  dataDir,
  log,
  maxConnections = 100,
}: EmbeddedOptions): Promise<EmbeddedPostgres> {
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
    const options = { native, cluster, account, socketFolder, lockFd: lock.fd, log, maxConnections };
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

/**
 * Returns the address of the server that runs on a data folder; undefined if no server runs. Used by a second program of the same
 * user, such as an export.
 */
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
