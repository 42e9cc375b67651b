import { randomUUIDv7 } from 'node:crypto';
import { maxAttachmentBytes } from '@runyard/contract/limits';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import { blobKeyOf, discardAttachments, type StoredAttachment } from './store.ts';

/**
 * Copies stored files to new rows and blobs, so that either run can be deleted without the other. Null: the bytes of a file are lost,
 * and nothing was copied.
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
      const found = await blobs.get(file.blobKey);
      if (!found) return null;
      const blobKey = blobKeyOf(id);
      copies.push({ ...file, id, blobKey });
      const put = await blobs
        .put(blobKey, found.stream, { maxBytes: maxAttachmentBytes })
        .finally(() => found.stream.destroy());
      if (put.outcome !== 'stored' || !put.sha256.equals(file.sha256)) return null;
    }
    isComplete = true;
    return copies;
  } finally {
    if (!isComplete) await discardAttachments(blobs, copies);
  }
}
