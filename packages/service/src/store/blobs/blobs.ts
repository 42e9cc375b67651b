/**
 * Big bodies: transcripts, artifacts, attachments, payloads. The database keeps a blob's key, size and SHA-256. The
 * interface promises only what a folder and an S3 bucket both do: whole objects, replaced at once, no rename, no append.
 */
import type { Readable } from 'node:stream';

export type PutOutcome =
  | { readonly outcome: 'stored'; readonly sizeBytes: number; readonly sha256: Buffer }
  /** The body had more than `maxBytes`; nothing was stored. */
  | { readonly outcome: 'too_large' };

/** Bytes from `start` to `end`, both included, as in an HTTP range. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface Blob {
  /** Of the whole blob, whatever range is read. */
  readonly sizeBytes: number;
  /** Must be read to its end or destroyed. */
  readonly stream: Readable;
}

export interface ListedBlob {
  readonly key: string;
  readonly sizeBytes: number;
  readonly storedAt: Date;
}

export interface BlobStore {
  /**
   * Stores the whole body and resolves when it is durable. Readers see the old blob or the new one, never a part.
   * Throws what the body throws; then, and for `too_large`, the key is as it was before.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, limits: { readonly maxBytes: number }): Promise<PutOutcome>;
  /** Undefined where there is none. A range beyond the end gives an empty stream. */
  get(key: string, range?: ByteRange): Promise<Blob | undefined>;
  stat(key: string): Promise<{ readonly sizeBytes: number } | undefined>;
  /** Does nothing where there is none. */
  delete(key: string): Promise<void>;
  /** Every blob, in no order; blobs that come or go meanwhile may be in it or not. */
  list(): AsyncIterable<ListedBlob>;
}

const keyPattern = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;
const maxKeyLength = 200;

/** Throws where the key is not made of segments of `[A-Za-z0-9._-]`, each beginning with a letter or digit, parted by `/`. */
export function checkBlobKey(key: string): void {
  if (key.length > maxKeyLength || !keyPattern.test(key))
    throw new RangeError(`${JSON.stringify(key)} is not a blob key`);
}
