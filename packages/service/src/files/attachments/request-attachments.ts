import { createHash, randomUUIDv7 } from 'node:crypto';
import { Readable } from 'node:stream';
import { maxAttachmentBytes, maxAttachments } from '@runyard/contract/limits';
import type { AttachmentInput, RunAgentRequest } from '@runyard/contract/run-request';
import type { Fault } from '../../fault.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { StoredAttachment } from './stored.ts';

/** A file of the request, decoded. */
export interface DecodedAttachment {
  readonly fileName: string;
  readonly mimeType: string;
  readonly bytes: Buffer;
}

/** The attachments of a request; older clients send `images` without names. Faults where one is no base64 or too large. */
export function decodeAttachments(request: Pick<RunAgentRequest, 'attachments' | 'images'>): {
  attachments: DecodedAttachment[];
  faults: Fault[];
} {
  const faults: Fault[] = [];
  const attachments: DecodedAttachment[] = [];
  const images = (request.images ?? []).map((image, index) => ({
    ...image,
    file_name: `image-${index + 1}.${image.mime_type.split(/[/;+]/)[1] ?? 'bin'}`,
  }));
  const sent: [string, AttachmentInput][] = [
    ...(request.attachments ?? []).map((file, index): [string, AttachmentInput] => [`attachments.${index}`, file]),
    ...images.map((file, index): [string, AttachmentInput] => [`images.${index}`, file]),
  ];
  if (sent.length > maxAttachments) {
    faults.push({ path: 'attachments', message: `at most ${maxAttachments} together with images` });
  }
  for (const [path, file] of sent) {
    const bytes = Buffer.from(file.data, 'base64');
    // Buffer skips what is no base64: only what it gives back unchanged was base64 (RFC 4648, 3.5 and 4).
    if (bytes.toString('base64') !== file.data) {
      faults.push({
        path: `${path}.data`,
        message: 'must be base64 (RFC 4648, section 4) with its padding and no line breaks',
      });
    } else if (bytes.length > maxAttachmentBytes) {
      faults.push({ path: `${path}.data`, message: 'must be at most 10 MB decoded' });
    } else {
      attachments.push({ fileName: file.file_name, mimeType: file.mime_type, bytes });
    }
  }
  return { attachments, faults };
}

/** Puts the files into the blob store, before the run that refers to them is created. */
export async function storeAttachments(
  blobs: BlobStore,
  files: readonly DecodedAttachment[],
): Promise<StoredAttachment[]> {
  const stored: StoredAttachment[] = [];
  try {
    for (const { fileName, mimeType, bytes } of files) {
      const id = randomUUIDv7();
      const blobKey = `attachments/${id}`;
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

/** Takes them out again, where no run came of it. */
export async function discardAttachments(blobs: BlobStore, stored: readonly StoredAttachment[]): Promise<void> {
  for (const { blobKey } of stored) await blobs.delete(blobKey);
}

/** Copies of stored files, each with a blob of its own: either run may be deleted without the other. Null: one is lost. */
export async function copyAttachments(
  blobs: BlobStore,
  files: readonly StoredAttachment[],
): Promise<StoredAttachment[] | null> {
  const copies: StoredAttachment[] = [];
  let isWhole = false;
  try {
    for (const file of files) {
      const found = await blobs.get(file.blobKey);
      if (!found) return null;
      const id = randomUUIDv7();
      const copy = { ...file, id, blobKey: `attachments/${id}` };
      copies.push(copy);
      const put = await blobs.put(copy.blobKey, found.stream, { maxBytes: maxAttachmentBytes });
      if (put.outcome !== 'stored' || !put.sha256.equals(file.sha256)) return null;
    }
    isWhole = true;
    return copies;
  } finally {
    if (!isWhole) await discardAttachments(blobs, copies);
  }
}
