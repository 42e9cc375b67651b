import { StoreUnavailable } from '../database/unavailable.ts';
import type { FreeSpace } from '../free-space/free-space.ts';
import type { BlobStore } from './blobs.ts';

/** The free space is checked again after this many bytes of a stream. */
const lookEvery = 1024 * 1024;

/** Returns true for blobs that the service itself writes: transcripts. All other blobs come from clients and sandboxes. */
const isOfService = (key: string): boolean => key.startsWith('transcripts/');

/**
 * Returns a store for a disk on which the database also is. Storing a blob of a client or a sandbox fails with `StoreUnavailable` as
 * soon as the disk has no room for large files. At that time there is still enough room for small requests. So blobs cannot take the last
 * space from the
 * database.
 */
export function whileRoom(blobs: BlobStore, freeSpace: Pick<FreeSpace, 'streamProblem'>): BlobStore {
  async function* checked(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
  return {
    ...blobs,
    put: (key, body, limits) => blobs.put(key, isOfService(key) ? body : checked(body), limits),
  };
}
