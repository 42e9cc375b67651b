import { StoreUnavailable } from '../database/unavailable.ts';
import type { FreeSpace } from '../free-space/free-space.ts';
import type { BlobStore } from './blobs.ts';

/** Bytes of a stream between two looks at the free space. */
const lookEvery = 1024 * 1024;

/** Blobs that the service itself writes, such as transcripts; all other blobs come from clients and sandboxes. */
const isOfService = (key: string): boolean => key.startsWith('transcripts/');

/**
 * Returns a store for a disk that is shared with the database: a stream fails with `StoreUnavailable` as soon as the disk has no room for
 * large files, while small requests still work. So a stream cannot take the last space of the database.
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
