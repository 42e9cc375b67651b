import path from 'node:path';
import type { BlobStore } from '../blobs/blobs.ts';
import { openFolderBlobs } from '../blobs/folder-blobs.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../embedded/start.ts';
import { exportDatabase, type TransferResult } from './export.ts';

/** Places of the data of an installation. */
export interface DataPlace {
  /** Absolute path of the data folder, which holds the blobs and the embedded database. */
  readonly dataFolder: string;
  /** URL of a PostgreSQL server; absent: the embedded database. */
  readonly databaseUrl?: string;
}

/** Writes tables and blobs into the file `to`. The service may run meanwhile. Rejects with a message for a person. */
export async function exportDataFolder(place: DataPlace, to: string): Promise<TransferResult> {
  return withStore(place, (db, blobs) => exportDatabase({ db, blobs, to }));
}

/** Opens database and blobs for `work`. Starts the embedded database if it does not run, and stops it again. */
export async function withStore<T>(
  { dataFolder, databaseUrl }: DataPlace,
  work: (db: Database, blobs: BlobStore) => Promise<T>,
): Promise<T> {
  const embedded = databaseUrl === undefined ? await openEmbedded(path.join(dataFolder, 'postgres')) : undefined;
  try {
    const db = await openDatabase({
      address: embedded?.connection ?? { connectionString: databaseUrl ?? '' },
      maxConnections: 4,
      log: silentLog,
    });
    try {
      return await work(db, await openFolderBlobs(path.join(dataFolder, 'blobs')));
    } finally {
      await db.close();
    }
  } finally {
    await embedded?.stop();
  }
}

async function openEmbedded(folder: string) {
  const running = await findEmbeddedPostgres(folder);
  // Another process runs it, and stops it too.
  if (running) return { connection: running.connection, stop: async () => {} };
  return startEmbeddedPostgres({ dataDir: folder, log: silentLog });
}
