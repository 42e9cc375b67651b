import type { Readable } from 'node:stream';
import {
  lockInstallation,
  pauseInstallation,
  separateCopy,
  setBackedUp,
  setBlobsMarked,
  setVaultKey,
} from '../../platform/installation/installation.ts';
import { readVault, secretsKeyFile } from '../../platform/secrets/vault.ts';
import { createBlobMarker, readBlobMarker } from '../../platform/store/blobs/marker.ts';
import { blobsAddress, nameOfAddress } from '../../platform/store/blobs/open-blobs.ts';
import { type DataPlace, withStore } from '../../platform/store/transfer/data-folder.ts';
import type { TransferResult } from '../../platform/store/transfer/export.ts';
import { importDatabase } from '../../platform/store/transfer/import.ts';
import { runBlobs } from '../../runs/runs/delete.ts';
import { endAllBrowserSessions } from '../../team/access/key-management/browser-sessions.ts';
import { reportMissingBlobs } from '../retention/blobs.ts';
import { findKeyProblem } from './find-key-problem.ts';

export interface ImportResult extends TransferResult {
  /** Null if the key of this installation decrypts the imported secrets. Otherwise a text with the reason and the file to copy. */
  readonly keyProblem: string | null;
  /** Number of rows whose blob is missing in the file, because it was missing when the file was written. */
  readonly missingBlobs: number;
}

/**
 * Fills an empty database and an empty blob store from a backup. Checks that the key decrypts the secrets of the backup and that no blob is
 * missing. After the import, the services of the new database are paused until `resume`, and all browsers are signed out. No service may
 * run during the import. If the import fails, rejects with a message for a person.
 */
export async function importInstallation(
  place: DataPlace & { readonly secretsKey?: string },
  from: Readable | string,
): Promise<ImportResult> {
  const { dataFolder, secretsKey } = place;
  return await withStore(place, async (db, blobs) => {
    const owner = await readBlobMarker(blobs);
    if (owner !== undefined)
      throw new Error(
        `${nameOfAddress(blobsAddress(place.blobs, dataFolder))} has the blobs of another database (${owner}), such as the one that the backup was made of: name an empty folder or another prefix in RUNYARD_BLOBS, or a new data folder`,
      );
    const result = await importDatabase({ db, blobs, from, whenFilled: separateCopy });
    // Pause the copy, because the source may still run, and two installations must not do the same work. This happens after the import,
    // because a backup of an older version may lack the row that stores the pause.
    await db.transaction(async (tx) => {
      await lockInstallation(tx);
      await pauseInstallation(tx);
    });
    const vault = await readVault(dataFolder, secretsKey);
    const keyProblem = await findKeyProblem(db, {
      keyIds: vault?.keyIds ?? [],
      file: secretsKeyFile(dataFolder),
      isSetting: secretsKey !== undefined,
    });
    const missingBlobs = await reportMissingBlobs({
      db,
      blobs,
      columns: runBlobs,
      log: { error: () => {} },
      goOn: async () => {},
    });
    await db.transaction(async (tx) => {
      const { id } = await lockInstallation(tx);
      await createBlobMarker(blobs, id);
      await setBlobsMarked(tx);
      await setBackedUp(tx, null);
      await endAllBrowserSessions(tx);
      if (keyProblem === null) await setVaultKey(tx, vault?.keyId ?? null);
    });
    return { ...result, keyProblem, missingBlobs };
  });
}
