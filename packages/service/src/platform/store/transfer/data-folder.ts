import path from 'node:path';
import type { BlobStore } from '../blobs/blobs.ts';
import { markerKey, readBlobMarker } from '../blobs/marker.ts';
import { type CopiedBlobs, copyBlobs } from '../blobs/move-blobs.ts';
import { type BlobsSettings, blobsAddress, openBlobs, openBlobsAt } from '../blobs/open-blobs.ts';
import type { Database } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { openDatabase } from '../database/open-database.ts';
import { addressOf } from '../database/server-problem.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../embedded/start.ts';

/** Where an installation has its data. */
export interface DataPlace {
  /** Absolute path of the data folder, which holds the embedded database and, unless a setting says otherwise, the blobs. */
  readonly dataFolder: string;
  /** URL of a PostgreSQL server; absent: the installation uses the embedded database. */
  readonly databaseUrl?: string;
  readonly blobs: BlobsSettings;
}

/**
 * Copies all blobs of RUNYARD_BLOBS_FROM to RUNYARD_BLOBS. Services that have both settings may run meanwhile. `tell` gets the sums
 * after each blob. If this fails, the message of the error is for the person who runs the command.
 */
export async function moveBlobs(
  { dataFolder, blobs }: Pick<DataPlace, 'dataFolder' | 'blobs'>,
  tell: (sums: CopiedBlobs) => void,
): Promise<CopiedBlobs> {
  const from = blobs.RUNYARD_BLOBS_FROM;
  if (from === undefined)
    throw new Error(
      'RUNYARD_BLOBS_FROM is not set: set it to the place of the blobs until now, and RUNYARD_BLOBS to the new one, for this command and for all services, and restart the services first',
    );
  const [source, target] = [await openBlobsAt(from, blobs), await openBlobsAt(blobsAddress(blobs, dataFolder), blobs)];
  const problem = (await source.problem?.({ writes: false })) ?? (await target.problem?.());
  if (problem) throw new Error(problem.text);
  const [marker, other] = [await readBlobMarker(source), await readBlobMarker(target)];
  if (marker !== undefined && other !== undefined && marker !== other)
    throw new Error(`RUNYARD_BLOBS belongs to another database (${other}): name an empty folder, or another prefix`);
  const sums = await copyBlobs(source, target, tell);
  // Without the marker in the old store, a service that still has the old settings does not become ready at its next start.
  if ((await readBlobMarker(target)) !== undefined) await source.delete(markerKey);
  return sums;
}

/** Returns why the blobs of an installation cannot be read and written; null if they can. */
export async function findBlobsProblem({
  dataFolder,
  blobs,
}: Pick<DataPlace, 'dataFolder' | 'blobs'>): Promise<string | null> {
  return (await (await openBlobs(blobs, dataFolder)).problem?.())?.text ?? null;
}

/** Opens the database and the blobs for `work`. If the embedded database does not run, starts it and stops it afterwards. */
export async function withStore<T>(place: DataPlace, work: (db: Database, blobs: BlobStore) => Promise<T>): Promise<T> {
  return await withDatabase(place, async (db) => await work(db, await openBlobs(place.blobs, place.dataFolder)));
}

/** Opens the database for `work`. If the embedded database does not run, starts it and stops it afterwards. */
export async function withDatabase<T>(
  { dataFolder, databaseUrl }: Omit<DataPlace, 'blobs'>,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const embedded = databaseUrl === undefined ? await openEmbedded(embeddedFolder(dataFolder)) : undefined;
  try {
    const db = await openDatabase({
      address: embedded?.connection ?? addressOf(databaseUrl ?? ''),
      maxConnections: 4,
      log: silentLog,
    });
    try {
      return await work(db);
    } finally {
      await db.close();
    }
  } finally {
    await embedded?.stop();
  }
}

const embeddedFolder = (dataFolder: string): string => path.join(dataFolder, 'postgres');

/** Returns false if the installation uses the embedded database and that database does not run. */
export async function mayAnswer({ dataFolder, databaseUrl }: Omit<DataPlace, 'blobs'>): Promise<boolean> {
  return databaseUrl !== undefined || (await findEmbeddedPostgres(embeddedFolder(dataFolder))) !== undefined;
}

async function openEmbedded(folder: string) {
  const running = await findEmbeddedPostgres(folder);
  // Do not stop the database, because another process has started it and uses it.
  if (running) return { connection: running.connection, stop: async () => {} };
  return startEmbeddedPostgres({ dataDir: folder, log: silentLog });
}
