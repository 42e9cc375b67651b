/** Commands of the operator of the machine for the whole installation. */
import type { Writable } from 'node:stream';
import type { Settings } from '@runyard/contract/settings/settings';
import { readBackedUpAt, resumeInstallation, setBackedUp } from '../../platform/installation/installation.ts';
import { sqlState } from '../../platform/store/database/connections.ts';
import { type DataPlace, mayAnswer, withDatabase, withStore } from '../../platform/store/transfer/data-folder.ts';
import { exportDatabase, type TransferResult } from '../../platform/store/transfer/export.ts';
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
