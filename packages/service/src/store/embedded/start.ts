/** The embedded PostgreSQL: a real server that belongs to this process and to one data folder. */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreLog } from '../database/log.ts';
import { stateOf, thisProcess } from '../process-identity.ts';
import { chooseAccount } from './account.ts';
import { copyPlaces, locateBinaries, prepareBinaries } from './binaries.ts';
import { ensureCluster, ensureFolder, superuser } from './cluster.ts';
import { readOwner, writeOwner } from './folder-lock.ts';
import { clearStale, takeFolder } from './leftovers.ts';
import { type Postmaster, startPostmaster } from './postmaster.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';

/** How to reach the server: for `pg`, and as a URL for a setting. */
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
  /** Resolves when it is gone. Fast shutdown: open transactions are rolled back, a checkpoint is written. */
  stop(): Promise<void>;
}

export interface EmbeddedOptions {
  /** Folder for this server alone; made where it does not exist. Its parents may be closed to others. */
  readonly dataDir: string;
  readonly log: StoreLog;
}

/** A server that died this often within a minute is not started again. */
const maxRestartsPerMinute = 10;
const restartPatienceMs = 30_000;

/**
 * Starts the server and resolves when it answers. It lives as long as this process: it is stopped by `stop`, or by its
 * guard when this process ends in any other way, and started again where it dies on its own.
 * Throws where another process uses the folder (naming it) and where PostgreSQL cannot run.
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
    const stop = keepRunning(await startPostmaster(options), () => startPostmaster(options), log);
    const made = socketFolder;
    const stopAll = async () => {
      await stop();
      await removeSocketFolder(made);
      lock.release();
    };
    let stopped: Promise<void> | undefined;
    return {
      ...addressOf(made),
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

/** The running server of a folder, for a second program of the same user (an export); undefined where none runs. */
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

/** Returns the function that stops for good. */
function keepRunning(first: Postmaster, startAgain: () => Promise<Postmaster>, log: StoreLog): () => Promise<void> {
  let stopping = false;
  let current: Promise<Postmaster | undefined> = Promise.resolve(first);
  let deaths: number[] = [];
  const watch = (postmaster: Postmaster) => {
    void postmaster.exited.then((reason) => {
      if (!stopping) current = restart(reason);
    });
  };
  const restart = async (reason: string): Promise<Postmaster | undefined> => {
    deaths = [...deaths.filter((time) => time > Date.now() - 60_000), Date.now()];
    if (deaths.length > maxRestartsPerMinute) {
      log.error({ reason }, 'the embedded PostgreSQL ends again and again; it is not started any more');
      return undefined;
    }
    log.error({ reason }, 'the embedded PostgreSQL ended; starting it again');
    const giveUp = Date.now() + restartPatienceMs;
    while (!stopping) {
      try {
        const postmaster = await startAgain();
        watch(postmaster);
        return postmaster;
      } catch (error) {
        // Backends of the dead server need a moment to end: PostgreSQL does not start while they hold its shared memory.
        if (Date.now() > giveUp) {
          log.error({ error: String(error) }, 'the embedded PostgreSQL does not start again');
          return undefined;
        }
        await delay(100);
      }
    }
    return undefined;
  };
  watch(first);
  return async () => {
    stopping = true;
    await (await current)?.stop();
  };
}
