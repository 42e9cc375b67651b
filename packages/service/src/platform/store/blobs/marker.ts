/** The marker: a blob with the id of the installation that owns a blob store. */
import { text } from 'node:stream/consumers';
import type { BlobStore } from './blobs.ts';

/** The key of the marker. No row of the database names this blob, but the nightly sweep of unused blobs keeps it. */
export const markerKey = 'installation';

const bytesOf = async function* (id: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(id);
};

/** Returns the id of the installation; undefined if the store has no marker. */
export async function readBlobMarker(blobs: BlobStore): Promise<string | undefined> {
  const blob = await blobs.get(markerKey);
  return blob && (await text(blob.stream));
}

/** Creates the marker if the store has none. Returns the id in the marker, which is another id if another installation has marked the store. */
export async function createBlobMarker(blobs: BlobStore, id: string): Promise<string> {
  const before = await readBlobMarker(blobs);
  if (before !== undefined || (await blobs.putIfAbsent(markerKey, bytesOf(id)))) return before ?? id;
  return (await readBlobMarker(blobs)) ?? id;
}

export async function replaceBlobMarker(blobs: BlobStore, id: string): Promise<void> {
  await blobs.put(markerKey, bytesOf(id), { maxBytes: 100 });
}
