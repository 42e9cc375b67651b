/** Commands of the operator of the machine for the whole installation. */
import type { Writable } from 'node:stream';
import type { ExecutorPreview } from '@runyard/contract/runs/acceptances';
import type { Settings } from '@runyard/contract/settings/settings';
import { readBackedUpAt, resumeInstallation, setBackedUp } from '../../platform/installation/installation.ts';
import { sqlState } from '../../platform/store/database/connections.ts';
import { tryMigrations } from '../../platform/store/migrations/migrate.ts';
import { type DataPlace, mayAnswer, withDatabase, withStore } from '../../platform/store/transfer/data-folder.ts';
import { exportDatabase, type TransferResult } from '../../platform/store/transfer/export.ts';
import { listAllTeams } from '../../team/access/people/own-teams.ts';
import { previewAcceptances } from '../../triggers/starts/preview-acceptances.ts';
import { acceptFolder } from './check-installation.ts';

/** Ends the pause of an imported installation. Returns false if it was not paused. Services notice within seconds. */
export async function resume(place: DataPlace): Promise<boolean> {
  return await withDatabase(place, resumeInstallation);
}

/** Makes the database use the secrets key and blobs of the data folder, after the original ones were lost. */
export async function useFolder(place: DataPlace, settings: Pick<Settings, 'RUNYARD_SECRETS_KEY'>): Promise<void> {
  await withStore(place, (db, blobs) =>
    acceptFolder(db, { dataDir: place.dataFolder, settings: { ...place.blobs, ...settings }, blobs }),
  );
}

/** Error codes of PostgreSQL for a table or column that does not exist. */
const olderTables = ['42P01', '42703'];

/**
 * Writes tables and blobs to a file or stream (`ExportOptions.to`), and stores the time of the backup in the database. The services may run
 * meanwhile. Rejects with a message for a person.
 */
export async function backUp(place: DataPlace, to: Writable | string): Promise<TransferResult> {
  return await withStore(place, async (db, blobs) => {
    const [now] = await db.query<{ at: string; isStandby: boolean }>(
      `SELECT clock_timestamp() AS at, pg_is_in_recovery() AS "isStandby"`,
    );
    if (now === undefined || now.isStandby)
      throw new Error(
        'RUNYARD_DATABASE_URL is a standby, where services do not see the backup: use the primary server',
      );
    const result = await exportDatabase({ db, blobs, to });
    await setBackedUp(db, now.at).catch((error: Error) => {
      // A newer version may make the backup before an upgrade, when the database still has the older tables.
      if (!olderTables.includes(sqlState(error) ?? ''))
        throw new Error(`The backup is complete, but its time could not be stored: ${error.message}`, { cause: error });
    });
    return result;
  });
}

/**
 * Returns the time of the last backup, RFC 3339; null: there was no backup; undefined: the database does not answer, or has an older
 * schema.
 */
export async function readLastBackup(place: DataPlace): Promise<string | null | undefined> {
  if (!(await mayAnswer(place))) return undefined;
  return await withDatabase(place, readBackedUpAt).catch(() => undefined);
}

/** The rights that the executors of a team lack until they accept texts. */
export interface TeamPreview {
  readonly uid: string;
  readonly name: string;
  readonly executors: readonly ExecutorPreview[];
}

/** Thrown to roll a transaction back. */
class Undo extends Error {
  override readonly name = 'Undo';
}

/**
 * Returns for each team what its executors would lack with this version of Runyard until they accept texts. Runs the migrations that are
 * missing in a transaction and rolls it back, so the database stays as it is. Services that run meanwhile wait for some tables until then.
 */
export async function previewUpgrade(place: DataPlace): Promise<TeamPreview[]> {
  return await withDatabase(place, async (db) => {
    const previews: TeamPreview[] = [];
    const work = db.transaction(async (tx) => {
      previews.length = 0;
      await tx.query("SET LOCAL lock_timeout = '10s'");
      await tryMigrations(tx);
      for (const { id, ...team } of await listAllTeams(tx))
        previews.push({ ...team, executors: await previewAcceptances(tx, id) });
      throw new Undo();
    });
    await work.catch((error: unknown) => {
      if (!(error instanceof Undo)) throw error;
    });
    return previews;
  });
}
