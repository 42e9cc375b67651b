import { existsSync } from 'node:fs';
import path from 'node:path';
import { openFolderBlobs } from '@runyard/service/store/blobs/folder-blobs';
import { type Database, openDatabase } from '@runyard/service/store/database/database';
import { silentLog } from '@runyard/service/store/database/log';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '@runyard/service/store/embedded/start';
import { exportDatabase, type TransferResult } from '@runyard/service/store/transfer/export';
import { importDatabase } from '@runyard/service/store/transfer/import';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { formatCount } from '../live/amounts.ts';
import { readClaim } from '../supervise/claim.ts';
import { readServiceFile } from '../supervise/service-file.ts';

/** Writes tables and blobs into one file, also while the service runs. */
export async function exportAll(context: Context, file: string): Promise<void> {
  const target = path.resolve(file);
  if (existsSync(target)) throw new Failure(`${target} exists already; name a new file`);
  const result = await withStore(context, async (db, blobs) => await exportDatabase({ db, blobs, to: target }));
  context.report(
    `wrote ${target}: ${describe(result)}. It holds hashes of keys and all prompts: keep it as you keep the data folder`,
  );
}

/** Fills an empty database and blob folder from a file that `export` wrote; the service must not run. */
export async function importAll(context: Context, file: string): Promise<void> {
  const source = path.resolve(file);
  if (!existsSync(source)) throw new Failure(`there is no file ${source}`);
  if (readClaim(context.folder.supervisorFile) || readServiceFile(context.folder.serviceFile)) {
    throw new Failure('Runyard is running on this data folder; stop it first: bin/runyard down');
  }
  const result = await withStore(context, async (db, blobs) => await importDatabase({ db, blobs, from: source }));
  context.report(`read ${source}: ${describe(result)}`);
  if (!existsSync(context.folder.bootstrapKeyFile)) {
    context.report(
      `API keys go on to work, but are stored only as hashes: copy bootstrap-key from the old data folder to ${context.folder.path}, or set RUNYARD_BOOTSTRAP_KEY`,
    );
  }
}

function describe(result: TransferResult): string {
  return `${formatCount(result.rows)} rows of ${result.tables} tables, ${formatCount(result.blobs)} blobs`;
}

/** Opens the database that these settings name (the embedded one is started where it does not run) and the blobs beside it. */
async function withStore<T>(
  context: Context,
  work: (db: Database, blobs: Awaited<ReturnType<typeof openFolderBlobs>>) => Promise<T>,
): Promise<T> {
  const url = context.settings.RUNYARD_DATABASE_URL;
  const embeddedFolder = path.join(context.folder.path, 'postgres');
  const running = url === undefined ? await findEmbeddedPostgres(embeddedFolder) : undefined;
  const started =
    url === undefined && !running
      ? await startEmbeddedPostgres({ dataDir: embeddedFolder, log: silentLog })
      : undefined;
  try {
    const embedded = (running ?? started)?.connection;
    const db = await openDatabase({
      address: embedded ?? { connectionString: url ?? '' },
      maxConnections: 4,
      log: silentLog,
    });
    try {
      return await work(db, await openFolderBlobs(path.join(context.folder.path, 'blobs')));
    } catch (error) {
      throw new Failure(error instanceof Error ? error.message : String(error));
    } finally {
      await db.close();
    }
  } finally {
    await started?.stop();
  }
}
