import { createHash, randomUUIDv7 } from 'node:crypto';
import { Readable } from 'node:stream';
import { maxAttachmentBytes } from '@runyard/contract/limits';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { DecodedAttachment } from './decode.ts';

/** An attachment whose bytes are in the blob store. */
export interface StoredAttachment {
  readonly id: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
  readonly blobKey: string;
}

/** Stores the bytes of the files, before the rows that refer to them are written. */
export async function storeAttachments(
  blobs: BlobStore,
  files: readonly DecodedAttachment[],
): Promise<StoredAttachment[]> {
  const stored: StoredAttachment[] = [];
  try {
    for (const { fileName, mimeType, bytes } of files) {
      const { id, blobKey } = newAttachmentBlob();
      await blobs.put(blobKey, Readable.from([bytes], { objectMode: true }), { maxBytes: maxAttachmentBytes });
      const sha256 = createHash('sha256').update(bytes).digest();
      stored.push({ id, fileName, mimeType, sizeBytes: bytes.length, sha256, blobKey });
    }
    return stored;
  } catch (error) {
    await discardAttachments(blobs, stored);
    throw error;
  }
}

/** Returns a new id and the key of its blob. */
export function newAttachmentBlob(): { readonly id: string; readonly blobKey: string } {
  const id = randomUUIDv7();
  return { id, blobKey: `attachments/${id}` };
}

/** Deletes the bytes of attachments whose run or follow-up was not created. */
export async function discardAttachments(blobs: BlobStore, stored: readonly StoredAttachment[]): Promise<void> {
  for (const { blobKey } of stored) await blobs.delete(blobKey);
}
