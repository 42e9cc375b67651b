import { randomUUIDv7 } from 'node:crypto';
import { maxArtifactBytes } from '@runyard/contract/artifacts';
import type { BlobStore } from '../store/blobs.ts';
import type { Database } from '../store/database.ts';

/** `not_found` 404; `too_large` 413; `other_bytes` 409: it has other bytes already. Sending the same bytes again is `stored`. */
export type UploadOutcome = 'stored' | 'not_found' | 'too_large' | 'other_bytes';

/** Streams the bytes of a reported artifact into the blob store; the artifact exists for readers from then on. */
export async function uploadArtifact(
  deps: { readonly db: Database; readonly blobs: BlobStore },
  artifactUid: string,
  body: AsyncIterable<Uint8Array>,
): Promise<UploadOutcome> {
  const { db, blobs } = deps;
  const known = await db.query(`SELECT 1 FROM artifacts WHERE id = $1 AND artifact_type IN ('FILE', 'SCREENSHOT')`, [
    artifactUid,
  ]);
  if (known.length === 0) return 'not_found';
  // Each upload has a blob of its own: of two at once one wins, and the other's bytes are not mixed with it.
  const blobKey = `artifacts/${artifactUid}/${randomUUIDv7()}`;
  const put = await blobs.put(blobKey, body, { maxBytes: maxArtifactBytes });
  if (put.outcome === 'too_large') return 'too_large';
  // Where this ends in an error the blob stays: the row may name it all the same, and if not, the sweep finds it.
  const updated = await db.query(
    `UPDATE artifacts SET is_ready = true, blob_key = $2, size_bytes = $3, sha256 = $4 WHERE id = $1 AND NOT is_ready RETURNING id`,
    [artifactUid, blobKey, put.sizeBytes, put.sha256],
  );
  if (updated.length > 0) return 'stored';
  await blobs.delete(blobKey);
  const [row] = await db.query<{ same: boolean }>('SELECT sha256 = $2 AS same FROM artifacts WHERE id = $1', [
    artifactUid,
    put.sha256,
  ]);
  if (!row) return 'not_found';
  return row.same ? 'stored' : 'other_bytes';
}
