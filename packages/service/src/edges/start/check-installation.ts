/**
 * Checks that this process has the secrets key and the blob store of its database, because all processes of a database must share both.
 */
import type { Settings } from '@runyard/contract/settings/settings';
import {
  type Installation,
  lockInstallation,
  setBlobsMarked,
  setVaultKey,
} from '../../platform/installation/installation.ts';
import { openVault, readVault, secretsKeyFile } from '../../platform/secrets/vault.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { createBlobMarker, readBlobMarker, replaceBlobMarker } from '../../platform/store/blobs/marker.ts';
import { type BlobsSettings, blobsAddress, nameOfAddress } from '../../platform/store/blobs/open-blobs.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { findKeyProblem } from './find-key-problem.ts';
import { NotUsable } from './until-usable.ts';

interface Place {
  readonly dataDir: string;
  readonly settings: Pick<Settings, 'RUNYARD_SECRETS_KEY'> & BlobsSettings;
  readonly blobs: BlobStore;
}

const lostHint =
  'If the original key or blobs are lost, bin/runyard use-folder makes the database use the key and blobs of its data folder';

/**
 * Compares the key and the blobs of this process with the row of the installation. The first process of a database writes this row. Throws
 * `NotUsable` with a text that says which files to copy. If processes had different keys, a secret could be decrypted only by some of them;
 * with different blobs, only some downloads would work.
 */
export async function checkInstallation(db: Database, place: Place): Promise<void> {
  // The id is committed before it is written to the blob store. So a process that is killed between the two steps leaves no marker with an
  // unknown id.
  await db.transaction(lockInstallation);
  await db.transaction(async (tx) => {
    const installation = await lockInstallation(tx);
    await checkKey(tx, installation, place);
    await checkBlobs(tx, installation, place);
  });
}

async function checkKey(tx: Queryable, { vaultKeyId }: Installation, { dataDir, settings }: Place): Promise<void> {
  const setting = settings.RUNYARD_SECRETS_KEY;
  const file = secretsKeyFile(dataDir);
  const source = setting === undefined ? file : 'RUNYARD_SECRETS_KEY';
  // If the database already has a key, do not create a key file, because the new file would contain a wrong key.
  const vault = vaultKeyId === null ? await openVault(dataDir, setting) : await readVault(dataDir, setting);
  const keyIds = vault?.keyIds ?? [];
  if (vaultKeyId === null) {
    const problem = await findKeyProblem(tx, { keyIds, file, isSetting: setting !== undefined });
    if (problem !== null)
      throw new NotUsable(
        'the secrets key of this service does not open the secrets of its database',
        `${problem} ${lostHint}.`,
      );
  } else if (!keyIds.includes(vaultKeyId)) {
    throw new NotUsable(
      `the secrets key of this service is not the key of its database, which has the id ${vaultKeyId}`,
      `${source} ${vault === undefined ? 'is missing: it' : `has the key ${vault.keyId}, but`} must have the key ${vaultKeyId}. Copy secrets-key to ${file} from the data folder of a service of this database, or set RUNYARD_SECRETS_KEY if it has that. ${lostHint}.`,
    );
  }
  if (vault !== undefined && vault.keyId !== vaultKeyId) await setVaultKey(tx, vault.keyId);
}

async function checkBlobs(tx: Queryable, { id, hasMarkedBlobs }: Installation, place: Place): Promise<void> {
  const marker = hasMarkedBlobs ? await readBlobMarker(place.blobs) : await createBlobMarker(place.blobs, id);
  if (marker !== id) {
    const name = nameOfAddress(blobsAddress(place.settings, place.dataDir));
    throw new NotUsable(
      'the blobs of this service are not the blobs of its database',
      `${name} ${marker === undefined ? 'has no blob "installation"' : `belongs to another database (${marker})`}; the database is ${id}. All services of a database need the same RUNYARD_BLOBS: one bucket, or one folder in a shared file system. ${lostHint}.`,
    );
  }
  if (!hasMarkedBlobs) await setBlobsMarked(tx);
}

/**
 * Makes a database use the secrets key and blobs of this data folder, after the original ones were lost. Data that was encrypted with the
 * original key or stored in the original blobs remains lost.
 */
export async function acceptFolder(db: Database, { dataDir, settings, blobs }: Place): Promise<void> {
  const vault = await openVault(dataDir, settings.RUNYARD_SECRETS_KEY);
  await db.transaction(async (tx) => {
    const { id } = await lockInstallation(tx);
    await replaceBlobMarker(blobs, id);
    await setBlobsMarked(tx);
    await setVaultKey(tx, vault.keyId);
  });
}
