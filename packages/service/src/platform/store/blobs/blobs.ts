/**
 * A blob store holds large bodies: transcripts, artifacts, attachments and payloads. The database stores only the key, the size and
 * the SHA-256 of each blob. A blob is written and replaced as a whole. There is no rename and no append, because an S3 bucket has
 * neither.
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
  /** Size of the whole blob, even if only a range is read. */
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
   * Stores the whole body, and resolves when the blob is durable. A reader sees the old blob or the new blob, never a part of one. If
   * reading `body` fails, throws its error. After an error or `too_large`, the old blob is unchanged.
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
  /** Lists all blobs in no particular order. A blob that is stored or deleted during the listing may be listed or missing. */
  list(): AsyncIterable<ListedBlob>;
  /**
   * Returns a URL at which everyone can read the blob until it expires. If the method is absent or returns null,
   * clients read the blob through the service. The caller has checked that the blob exists and that the reader may read it.
   */
  presign?(key: string, answer: PresignedAnswer): Promise<string | null>;
  /**
   * Returns why blobs cannot be read and written now; null if they can. `writes` is false for a store in which no new blobs are stored.
   * A store in a folder does not have this method, because it fails only if the disk fails.
   */
  problem?(options?: { readonly writes?: boolean }): Promise<BlobsProblem | null>;
}

export interface BlobsProblem {
  /** A sentence for the operator, without a full stop. */
  readonly text: string;
  /** True: the problem lasts until a person repairs it. False: it may end by itself. */
  readonly isLasting: boolean;
}

/** The headers that the answer at a presigned URL has, and the seconds for which the URL is valid. */
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
