import { count } from '../../metrics/record.ts';
import { StoreUnavailable } from '../database/unavailable.ts';
import type { FreeSpace } from '../free-space/free-space.ts';
import type { BlobStore } from './blobs.ts';

/** The decisions of the service about its blobs. */
export interface BlobGuards {
  /** The free space of the disk, if the database is on the disk of the blobs. */
  readonly freeSpace?: Pick<FreeSpace, 'streamProblem'> | undefined;
  /** Returns false while no blob may be deleted. Default: blobs may always be deleted. */
  readonly mayDelete?: () => Promise<boolean>;
}

/**
 * Returns a store that counts its operations for the metrics, and that obeys two guards. While an export runs, nothing is deleted; the
 * nightly sweep deletes these blobs later. If the disk has no room for large files, storing a blob of a client or a sandbox fails with
 * `StoreUnavailable`. At that time there is still enough room for small requests, so blobs cannot take the last space from the database.
 */
export const guardBlobs = (blobs: BlobStore, { freeSpace, mayDelete }: BlobGuards): BlobStore => ({
  ...blobs,
  put: async (key, body, limits) => {
    const bytes = freeSpace === undefined || isOfService(key) ? body : whileRoom(body, freeSpace);
    const stored = await counted('put', blobs.put(key, bytes, limits), ({ outcome }) =>
      outcome === 'stored' ? 'done' : outcome,
    );
    if (stored.outcome === 'stored') count('runyard_blob_written_bytes_total', {}, stored.sizeBytes);
    return stored;
  },
  get: (key, range) => counted('get', blobs.get(key, range), (blob) => (blob ? 'done' : 'missing')),
  delete: async (key) => {
    if ((await mayDelete?.()) ?? true) await counted('delete', blobs.delete(key), () => 'done');
  },
});

/** Returns true for blobs that the service itself writes: transcripts. All other blobs come from clients and sandboxes. */
const isOfService = (key: string): boolean => key.startsWith('transcripts/');

/** The free space is checked again after this many bytes of a stream. */
const lookEvery = 1024 * 1024;

async function* whileRoom(
  body: AsyncIterable<Uint8Array>,
  freeSpace: Pick<FreeSpace, 'streamProblem'>,
): AsyncGenerator<Uint8Array> {
  let sinceLook = lookEvery;
  for await (const piece of body) {
    sinceLook += piece.byteLength;
    if (sinceLook >= lookEvery) {
      sinceLook = 0;
      const problem = await freeSpace.streamProblem();
      if (problem !== null) throw new StoreUnavailable('disk', new Error(problem));
    }
    yield piece;
  }
}

/** Counts an operation by its result. */
async function counted<T>(
  operation: 'put' | 'get' | 'delete',
  work: Promise<T>,
  resultOf: (value: T) => string,
): Promise<T> {
  try {
    const value = await work;
    count('runyard_blob_operations_total', { operation, result: resultOf(value) });
    return value;
  } catch (error) {
    count('runyard_blob_operations_total', { operation, result: 'failed' });
    throw error;
  }
}
