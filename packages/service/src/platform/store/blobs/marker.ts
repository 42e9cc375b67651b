/** The blob with the id of the installation that owns a blob store. */
import { text } from 'node:stream/consumers';
import type { BlobStore } from './blobs.ts';

/** No column of a table holds keys of this kind of blob, so the nightly sweep does not delete it. */
export const markerKey = 'installation';

const bytesOf = async function* (id: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(id);
};

/** Returns the id of the installation; undefined if the store has no marker. */
export async function readBlobMarker(blobs: BlobStore): Promise<string | undefined> {
  const blob = await blobs.get(markerKey);
  return blob && (await text(blob.stream));
}

/** Marks the store if it has no marker yet. Returns the marker that the store has afterwards. */
export async function createBlobMarker(blobs: BlobStore, id: string): Promise<string> {
  const before = await readBlobMarker(blobs);
  if (before !== undefined || (await blobs.putIfAbsent(markerKey, bytesOf(id)))) return before ?? id;
  return (await readBlobMarker(blobs)) ?? id;
}

/** Replaces the marker. */
export async function replaceBlobMarker(blobs: BlobStore, id: string): Promise<void> {
  await blobs.put(markerKey, bytesOf(id), { maxBytes: 100 });
}
