import { hash, randomUUIDv7 } from 'node:crypto';
import { Readable } from 'node:stream';
import { maxAttachmentBytes } from '@runyard/contract/limits';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { DecodedAttachment } from './decode.ts';

/** Files of up to this size are stored in their database row, because a file in the blob store needs two additional flushes of the disk. */
export const maxBytesInRow = 64 * 1024;

/** Says where the bytes of an attachment are: in its database row, or in a blob. */
type AttachmentBytes =
  | { readonly content: Buffer; readonly blobKey: null }
  | { readonly content: null; readonly blobKey: string };

/** An attachment whose bytes are already in the blob store, or will be stored in its database row. */
export type StoredAttachment = AttachmentBytes & {
  readonly id: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
};

/** Stores the bytes of the large files, before the rows that refer to them are written. */
export async function storeAttachments(
  blobs: BlobStore,
  files: readonly DecodedAttachment[],
): Promise<StoredAttachment[]> {
  const stored: StoredAttachment[] = [];
  try {
    for (const { fileName, mimeType, bytes } of files) {
      const sha256 = hash('sha256', bytes, 'buffer');
      const attachment = { id: randomUUIDv7(), fileName, mimeType, sizeBytes: bytes.length, sha256 };
      if (bytes.length <= maxBytesInRow) {
        stored.push({ ...attachment, content: bytes, blobKey: null });
        continue;
      }
      const blobKey = blobKeyOf(attachment.id);
      await blobs.put(blobKey, Readable.from([bytes], { objectMode: true }), { maxBytes: maxAttachmentBytes });
      stored.push({ ...attachment, content: null, blobKey });
    }
    return stored;
  } catch (error) {
    await discardAttachments(blobs, stored);
    throw error;
  }
}

export const blobKeyOf = (attachmentId: string): string => `attachments/${attachmentId}`;

/** Deletes the blobs of attachments whose run or follow-up was not created. */
export async function discardAttachments(blobs: BlobStore, stored: readonly StoredAttachment[]): Promise<void> {
  for (const { blobKey } of stored) if (blobKey !== null) await blobs.delete(blobKey);
}

/**
 * Copies the stored files of a run for another run, to new rows and blobs, so that each of the two runs can be deleted without the other.
 * Returns null and copies nothing if the bytes of a file are lost.
 */
export async function copyAttachments(
  blobs: BlobStore,
  files: readonly StoredAttachment[],
): Promise<StoredAttachment[] | null> {
  const copies: StoredAttachment[] = [];
  let isComplete = false;
  try {
    for (const file of files) {
      const id = randomUUIDv7();
      if (file.blobKey === null) {
        copies.push({ ...file, id });
        continue;
      }
      const blob = await blobs.get(file.blobKey);
      if (!blob) return null;
      const blobKey = blobKeyOf(id);
      copies.push({ ...file, id, blobKey });
      const put = await blobs
        .put(blobKey, blob.stream, { maxBytes: maxAttachmentBytes })
        .finally(() => blob.stream.destroy());
      if (put.outcome !== 'stored' || !put.sha256.equals(file.sha256)) return null;
    }
    isComplete = true;
    return copies;
  } finally {
    if (!isComplete) await discardAttachments(blobs, copies);
  }
}
