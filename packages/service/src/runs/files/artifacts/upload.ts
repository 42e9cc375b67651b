import { createHash, randomUUIDv7 } from 'node:crypto';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, numeric, uuid } from '../../../platform/store/database/statement.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { byteMaskOf } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { bytesOfTeam, type StorageRefusal } from '../stored-bytes.ts';
import { mostBytes, type RoomDeps, refuseSize, roomOfArtifact } from './room.ts';

/**
 * Outcome of an upload:
 * - `stored` 200: the bytes are stored now, or the same bytes were already stored.
 * - `not_found` 404.
 * - `other_digest` 400: the bytes do not have the digest that the caller has computed before.
 * - `other_bytes` 409: other bytes were already stored for the artifact.
 * - `busy` 429: the run already has its maximum number of concurrent uploads.
 * - `StorageRefusal` 413: there is no room for the artifact.
 */
export type UploadOutcome = 'stored' | 'busy' | 'not_found' | 'other_digest' | 'other_bytes' | StorageRefusal;

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

/** The bytes of an artifact as they arrive, and what the caller states about them. */
export interface ArtifactBody {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly sizeBytes?: number | undefined;
  /** SHA-256 of all bytes. */
  readonly sha256?: Buffer | undefined;
}

/** Streams the bytes of a reported artifact into the blob store. Readers see the artifact only when all its bytes have arrived. */
export async function uploadArtifact(
  deps: RoomDeps & {
    readonly db: Database;
    readonly blobs: BlobStore;
    readonly vault: Vault;
  },
  artifactUid: string,
  { bytes, sizeBytes = 0, sha256 }: ArtifactBody,
): Promise<UploadOutcome> {
  const { db, blobs } = deps;
  const known = await readStored(db, artifactUid);
  if (!known) return 'not_found';
  const refused = refuseSize(deps, known, sizeBytes);
  if (refused) return refused;
  const maxBytes = roomOfArtifact(deps, known);
  // Each upload has a separate blob, so that two concurrent uploads do not mix their bytes.
  const blobKey = `artifacts/${artifactUid}/${randomUUIDv7()}`;
  const kind = { name: `artifacts/${known.runId}`, most: maxUploads };
  const mask = byteMaskOf(deps, { grantedSecrets: await readGrantedSecrets(db, known.runId) });
  const received = hashed(bytes);
  const put = await oneUpload(db, kind, received.bytes, (leased) =>
    blobs.put(blobKey, mask.stream(leased), { maxBytes }),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large') return refuseSize(deps, known, maxBytes + 1, { isMore: true }) ?? 'busy';
  if (sha256 !== undefined && !received.sha256().equals(sha256)) {
    await blobs.delete(blobKey);
    return 'other_digest';
  }
  // Keep the blob after an error, because the commit may still have succeeded. If it did not, the sweep deletes the blob, because no row
  // names it.
  const updated = await db.transaction(async (tx) => {
    await tx.query(lockRun, [artifactUid]);
    const { run, team } = mostBytes(deps);
    return await tx.query(setBytes, [artifactUid, blobKey, put.sizeBytes, put.sha256, run, team]);
  });
  if (updated.length > 0) return 'stored';
  await blobs.delete(blobKey);
  const [row] = await db.query(compareBytes, [artifactUid, put.sha256]);
  const now = await readStored(db, artifactUid);
  if (!row || !now) return 'not_found';
  // Other uploads of the run or team have taken the room. If there is room again, the caller sends the bytes again.
  if (!row.isReady) return refuseSize(deps, now, put.sizeBytes) ?? 'busy';
  return row.same ? 'stored' : 'other_bytes';
}

async function readStored(db: Database, artifactUid: string) {
  const [row] = await db.query(readTarget, [artifactUid]);
  return row && { runId: row.run_id, others: Number(row.others), stored: Number(row.stored) };
}

/** Hashes bytes while they are read. Stored bytes have another hash if secrets in them are masked. */
function hashed(body: AsyncIterable<Uint8Array>) {
  const hash = createHash('sha256');
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for await (const piece of body) {
      hash.update(piece);
      yield piece;
    }
  }
  return { bytes: bytes(), sha256: () => hash.digest() };
}
