import { randomUUIDv7 } from 'node:crypto';
import { maxArtifactBytes } from '@runyard/contract/artifacts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database } from '../../store/database/database.ts';
import { oneUpload } from '../../uploads/lease.ts';

/**
 * `not_found` 404; `too_large`, `run_full` 413: more than an artifact may have, or the run's artifacts together; `other_bytes` 409: it
 * has other bytes already; `busy` 429: the run uploads as many as it may at once. Sending the same bytes again is `stored`.
 */
export type UploadOutcome = 'stored' | 'busy' | 'not_found' | 'too_large' | 'run_full' | 'other_bytes';

/** Of a run at once: what is on its way is not counted yet, and takes disk. */
const maxUploads = 4;

/** A run has at most 100 artifacts: they are counted, not kept count of. `$1` is one of them, whose own bytes do not count. */
const bytesOfOthers = `
  SELECT coalesce(sum(o.size_bytes), 0) FROM artifacts o JOIN artifacts a ON a.run_id = o.run_id WHERE a.id = $1 AND o.id <> $1`;

/** Streams the bytes of a reported artifact into the blob store; the artifact exists for readers from then on. */
export async function uploadArtifact(
  deps: { readonly db: Database; readonly blobs: BlobStore; readonly maxBytesOfRun: number },
  artifactUid: string,
  body: AsyncIterable<Uint8Array>,
): Promise<UploadOutcome> {
  const { db, blobs, maxBytesOfRun } = deps;
  const [known] = await db.query<{ others: string; run_id: string }>(
    `SELECT (${bytesOfOthers}) AS others, run_id FROM artifacts WHERE id = $1 AND artifact_type IN ('FILE', 'SCREENSHOT')`,
    [artifactUid],
  );
  if (!known) return 'not_found';
  const room = Math.max(0, maxBytesOfRun - Number(known.others));
  // Each upload has a blob of its own: of two at once one wins, and the other's bytes are not mixed with it.
  const blobKey = `artifacts/${artifactUid}/${randomUUIDv7()}`;
  const kind = { name: `artifacts/${known.run_id}`, most: maxUploads };
  const put = await oneUpload(db, kind, body, (held) =>
    blobs.put(blobKey, held, { maxBytes: Math.min(maxArtifactBytes, room) }),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large') return room < maxArtifactBytes ? 'run_full' : 'too_large';
  // Where this ends in an error the blob stays: the row may name it all the same, and if not, the sweep finds it.
  const updated = await db.transaction(async (tx) => {
    // Of two uploads at once the second counts the first.
    await tx.query('SELECT FROM runs WHERE id = (SELECT run_id FROM artifacts WHERE id = $1) FOR NO KEY UPDATE', [
      artifactUid,
    ]);
    return await tx.query(
      `UPDATE artifacts SET is_ready = true, blob_key = $2, size_bytes = $3, sha256 = $4
       WHERE id = $1 AND NOT is_ready AND (${bytesOfOthers}) + $3 <= $5 RETURNING id`,
      [artifactUid, blobKey, put.sizeBytes, put.sha256, maxBytesOfRun],
    );
  });
  if (updated.length > 0) return 'stored';
  await blobs.delete(blobKey);
  const [row] = await db.query<{ same: boolean; isReady: boolean }>(
    'SELECT sha256 = $2 AS same, is_ready AS "isReady" FROM artifacts WHERE id = $1',
    [artifactUid, put.sha256],
  );
  if (!row) return 'not_found';
  if (!row.isReady) return 'run_full';
  return row.same ? 'stored' : 'other_bytes';
}
