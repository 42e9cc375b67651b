/**
 * Large bodies: transcripts, artifacts, attachments, payloads. The database stores a blob's key, size and SHA-256. The interface promises
 * only what both a folder and an S3 bucket can do: whole objects, replaced at once, no rename, no append.
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
  /** Size of the whole blob, whatever range is read. */
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
   * Stores the whole body and resolves when it is durable. Readers see the old blob or the new one, never a part. Throws the error of the
   * body. After an error, and for `too_large`, the blob under the key is unchanged.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, limits: { readonly maxBytes: number }): Promise<PutOutcome>;
  /** Stores the body only if there is no blob under the key. Returns false if there is a blob, which stays unchanged. */
  putIfAbsent(key: string, body: AsyncIterable<Uint8Array>): Promise<boolean>;
  /**
   * Returns undefined if there is no such blob. For a range beyond the end, the stream is empty.
   */
  get(key: string, range?: ByteRange): Promise<Blob | undefined>;
  stat(key: string): Promise<{ readonly sizeBytes: number } | undefined>;
  /** Does nothing if there is no such blob. */
  delete(key: string): Promise<void>;
  /** Lists every blob, in no order; the list may or may not contain blobs that are stored or deleted during the listing. */
  list(): AsyncIterable<ListedBlob>;
  /**
   * Returns a URL at which everyone can read the blob until it expires. If the method is absent or returns null,
   * clients read the blob through the service. The caller has checked that the blob exists and that the reader may read it.
   */
  presign?(key: string, answer: PresignedAnswer): Promise<string | null>;
  /** Returns why blobs cannot be read and written now; null if they can. Absent for a folder, which fails only if the disk fails. */
  problem?(): Promise<BlobsProblem | null>;
}

export interface BlobsProblem {
  /** A sentence for the operator, without a full stop. */
  readonly text: string;
  /** Whether the problem lasts until a person changes something. */
  readonly isLasting: boolean;
}

/** Headers of the answer at a presigned URL, and how long it is valid. */
export interface PresignedAnswer {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly seconds: number;
}

const keyPattern = /^[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;
const maxKeyLength = 200;

/**
 * Returns true if the key consists of segments separated by `/`; a segment has characters of `[A-Za-z0-9._-]` and begins with a letter or
 * digit.
 */
export const isBlobKey = (key: string): boolean => key.length <= maxKeyLength && keyPattern.test(key);

/** Throws if the text is not a valid key. */
export function checkBlobKey(key: string): void {
  if (!isBlobKey(key)) throw new RangeError(`${JSON.stringify(key)} is not a blob key`);
}
