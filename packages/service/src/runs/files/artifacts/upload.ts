import { randomUUIDv7 } from 'node:crypto';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, numeric, uuid } from '../../../platform/store/database/statement.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { byteMaskOf } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { bytesOfTeam, type StorageRefusal, teamFull } from '../stored-bytes.ts';

/**
 * Outcome of an upload:
 * - `stored` 200: the bytes are stored now, or the same bytes were already stored.
 * - `not_found` 404.
 * - `too_large` 413: the artifact would have more bytes than one artifact may have.
 * - `run_full` 413: all artifacts of the run together would have more bytes than allowed.
 * - `other_bytes` 409: other bytes were already stored for the artifact.
 * - `busy` 429: the run already has its maximum number of concurrent uploads.
 */
export type UploadOutcome = 'stored' | 'busy' | 'not_found' | 'too_large' | 'run_full' | 'other_bytes' | StorageRefusal;

/** Maximum number of concurrent uploads of a run, because their bytes use disk space before they are counted. */
const maxUploads = 4;

/**
 * Sums the bytes of the run's artifacts except the artifact `$1`. A run has at most 100 artifacts, so the sum is computed each time and not
 * stored.
 */
const bytesOfOthers = `
  SELECT coalesce(sum(o.size_bytes), 0) FROM artifacts o JOIN artifacts a ON a.run_id = o.run_id WHERE a.id = $1 AND o.id <> $1`;

const readTarget = defineStatement({
  name: 'read_artifact_to_upload',
  text: `SELECT (${bytesOfOthers}) AS others, run_id, ${bytesOfTeam('t.team_id')} AS stored FROM artifacts t WHERE id = $1 AND artifact_type IN ('FILE', 'SCREENSHOT')`,
  row: { others: numeric, run_id: uuid, stored: numeric },
});

/** Locks the run. So if two uploads are concurrent, the later upload also counts the bytes of the earlier upload. */
const lockRun = defineStatement({
  name: 'lock_run_of_artifact',
  text: 'SELECT FROM runs WHERE id = (SELECT run_id FROM artifacts WHERE id = $1) FOR NO KEY UPDATE',
  row: {},
});

const setBytes = defineStatement({
  name: 'set_bytes_of_artifact',
  text: `
    UPDATE artifacts SET is_ready = true, blob_key = $2, size_bytes = $3, sha256 = $4
    WHERE id = $1 AND NOT is_ready AND (${bytesOfOthers}) + $3 <= $5 AND ${bytesOfTeam('artifacts.team_id')} + $3 <= $6
    RETURNING id`,
  row: { id: uuid },
});

const compareBytes = defineStatement({
  name: 'compare_bytes_of_artifact',
  text: 'SELECT sha256 = $2 AS same, is_ready AS "isReady" FROM artifacts WHERE id = $1',
  row: { same: nullable(boolean), isReady: boolean },
});

/** Streams the bytes of a reported artifact into the blob store. Readers see the artifact only when all its bytes have arrived. */
export async function uploadArtifact(
  deps: {
    readonly db: Database;
    readonly blobs: BlobStore;
    readonly vault: Vault;
    readonly executionDeps: Pick<ExecutionDeps, 'limits'>;
    /** Maximum size of one artifact. */
    readonly maxBytes: number;
    readonly maxBytesOfRun: number;
  },
  artifactUid: string,
  body: AsyncIterable<Uint8Array>,
): Promise<UploadOutcome> {
  const { db, blobs, executionDeps, maxBytes, maxBytesOfRun } = deps;
  const maxBytesOfTeam = executionDeps.limits.teamBytes;
  const [known] = await db.query(readTarget, [artifactUid]);
  if (!known) return 'not_found';
  const roomOfTeam = Math.max(0, maxBytesOfTeam - Number(known.stored));
  const roomOfRun = Math.max(0, maxBytesOfRun - Number(known.others));
  const full = roomOfTeam < roomOfRun ? teamFull(executionDeps, Number(known.stored)) : 'run_full';
  const room = Math.min(roomOfRun, roomOfTeam);
  // Each upload has a separate blob, so that two concurrent uploads do not mix their bytes.
  const blobKey = `artifacts/${artifactUid}/${randomUUIDv7()}`;
  const kind = { name: `artifacts/${known.run_id}`, most: maxUploads };
  const mask = byteMaskOf(deps, { grantedSecrets: await readGrantedSecrets(db, known.run_id) });
  const put = await oneUpload(db, kind, body, (leased) =>
    blobs.put(blobKey, mask.stream(leased), { maxBytes: Math.min(maxBytes, room) }),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large') return room < maxBytes ? full : 'too_large';
  // Keep the blob after an error, because the commit may still have succeeded. If it did not, the sweep deletes the blob, because no row
  // names it.
  const updated = await db.transaction(async (tx) => {
    await tx.query(lockRun, [artifactUid]);
    return await tx.query(setBytes, [artifactUid, blobKey, put.sizeBytes, put.sha256, maxBytesOfRun, maxBytesOfTeam]);
  });
  if (updated.length > 0) return 'stored';
  await blobs.delete(blobKey);
  const [row] = await db.query(compareBytes, [artifactUid, put.sha256]);
  if (!row) return 'not_found';
  if (!row.isReady) return full;
  return row.same ? 'stored' : 'other_bytes';
}
