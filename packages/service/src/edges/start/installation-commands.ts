/** What the operator of the machine does with the row of the installation. */
import type { Settings } from '@runyard/contract/settings/settings';
import { resumeInstallation } from '../../platform/installation/installation.ts';
import { type DataPlace, withStore } from '../../platform/store/transfer/data-folder.ts';
import { acceptFolder } from './check-installation.ts';

/** Ends the pause of an imported installation. Returns false if it was not paused. Services notice within seconds. */
export async function resume(place: DataPlace): Promise<boolean> {
  return await withStore(place, (db) => resumeInstallation(db));
}

/** Makes secrets key and blobs of the data folder those of the database, after the earlier ones were lost. */
export async function useFolder(place: DataPlace, settings: Pick<Settings, 'RUNYARD_SECRETS_KEY'>): Promise<void> {
  await withStore(place, (db, blobs) =>
    acceptFolder(db, { dataDir: place.dataFolder, settings: { ...place.blobs, ...settings }, blobs }),
  );
}
