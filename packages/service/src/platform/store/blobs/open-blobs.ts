/** Opens the blobs that the settings name. The SDK of S3 is loaded only if the blobs are in a bucket. */
import path from 'node:path';
import type { BlobsAddress } from '@runyard/contract/settings/blobs';
import type { Settings } from '@runyard/contract/settings/settings';
import { loadClient } from '@runyard/system/load-client';
import { type StoreLog, silentLog } from '../database/log.ts';
import type { BlobStore } from './blobs.ts';
import { openFolderBlobs } from './folder-blobs.ts';
import { readBoth } from './move-blobs.ts';

export type BlobsSettings = Partial<
  Pick<Settings, 'RUNYARD_BLOBS' | 'RUNYARD_BLOBS_FROM' | 'RUNYARD_BLOBS_ENCRYPTION' | 'RUNYARD_BLOBS_DOWNLOADS'>
>;

/** Returns the folder or the bucket in which an installation stores its blobs. */
export const blobsAddress = (settings: BlobsSettings, dataFolder: string): BlobsAddress =>
  settings.RUNYARD_BLOBS ?? { kind: 'folder', path: path.join(dataFolder, 'blobs') };

/** Returns an address as text, in the form in which the setting has it. */
export const nameOfAddress = (address: BlobsAddress): string =>
  address.kind === 'folder' ? address.path : `s3://${address.bucket}/${address.prefix}`;

/**
 * Opens the store at an address. Throws if a folder cannot be created. Sends no request to a bucket; `problem` checks whether the bucket
 * can be used.
 */
export async function openBlobsAt(
  address: BlobsAddress,
  settings: BlobsSettings,
  log: Pick<StoreLog, 'warn'> = silentLog,
): Promise<BlobStore> {
  if (address.kind === 'folder') return await openFolderBlobs(address.path);
  const { openS3Blobs } = await loadClient('RUNYARD_BLOBS=s3://…', () => import('./s3-blobs.ts'));
  return await openS3Blobs(address, {
    encryption: settings.RUNYARD_BLOBS_ENCRYPTION,
    presigns: settings.RUNYARD_BLOBS_DOWNLOADS === 'bucket',
    log,
  });
}

/** Opens the blob store of an installation. While the blobs move to another store, opens both stores. */
export async function openBlobs(
  settings: BlobsSettings,
  dataFolder: string,
  log?: Pick<StoreLog, 'warn'>,
): Promise<BlobStore> {
  const blobs = await openBlobsAt(blobsAddress(settings, dataFolder), settings, log);
  const from = settings.RUNYARD_BLOBS_FROM;
  return from === undefined ? blobs : readBoth(blobs, await openBlobsAt(from, settings, log));
}
