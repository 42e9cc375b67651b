import { randomUUIDv7 } from 'node:crypto';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database, Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { oneUpload } from '../../uploads/lease.ts';
import { holdSandbox } from '../workspaces/hold-sandbox.ts';
import { deleteSnapshots } from './replace.ts';

/**
 * `not_found` 404; `too_large` 413 and `too_short` 400: not as many bytes as announced; `other_bytes` 409; `busy` 429: the execution uploads files already.
 * The same bytes again are `stored`.
 */
export type PutOutcome = 'stored' | 'busy' | 'not_found' | 'too_large' | 'too_short' | 'other_bytes';

/** Of an execution at once: what is on its way takes disk. An agent sends one file after the other. */
const maxUploads = 16;

const readFile: Statement = {
  name: 'read_snapshot_file',
  text: `
    SELECT f.snapshot_id, s.run_id AS "runId", s.execution_id AS "executionId", e.token_hash AS "tokenHash", f.size_bytes
    FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id JOIN executions e ON e.id = s.execution_id WHERE f.id = $1`,
};

interface FileRow {
  snapshot_id: string;
  runId: string;
  executionId: string;
  tokenHash: Buffer;
  size_bytes: number;
}

/** Streams the bytes of a file into the blob store. With the last one of them its snapshot takes the place of the older one. */
export async function putSnapshotFile(
  { db, blobs }: { readonly db: Database; readonly blobs: BlobStore },
  fileId: string,
  body: AsyncIterable<Uint8Array>,
): Promise<PutOutcome> {
  const [file] = isUuid(fileId) ? await db.query<FileRow>(readFile, [fileId]) : [];
  if (!file) return 'not_found';
  const size = file.size_bytes;
  const key = `handoffs/${file.snapshot_id}/${randomUUIDv7()}`;
  const kind = { name: `handoff/${file.executionId}`, most: maxUploads };
  const put = await oneUpload(db, kind, body, (held) =>
    holdSandbox(db, file, () => blobs.put(key, held, { maxBytes: size })),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large') return 'too_large';
  const outcome =
    put.sizeBytes < size
      ? { kind: 'too_short' as const, unused: [key] }
      : await db.transaction((tx) => record(tx, file, { fileId, key, sha256: put.sha256 }));
  for (const unused of outcome.unused) await blobs.delete(unused);
  return outcome.kind;
}

/** Uploads of one run change its snapshots one after another. A next attempt of the execution deletes what this one announced. */
const lockRun: Statement = {
  name: 'lock_run_of_snapshot_file',
  text: 'SELECT FROM runs WHERE id = $1 FOR NO KEY UPDATE',
};

const keepFile: Statement = {
  name: 'keep_snapshot_file',
  text: 'UPDATE snapshot_files SET blob_key = $2, sha256 = $3 WHERE id = $1 AND blob_key IS NULL RETURNING id',
};

const isSame: Statement = {
  name: 'is_same_snapshot_file',
  text: 'SELECT sha256 = $2 AS same FROM snapshot_files WHERE id = $1',
};

const complete: Statement = {
  name: 'complete_snapshot',
  text: `
    UPDATE snapshots SET is_ready = true
    WHERE id = $1 AND NOT EXISTS (SELECT FROM snapshot_files WHERE snapshot_id = $1 AND blob_key IS NULL) RETURNING id`,
};

async function record(
  tx: Queryable,
  file: FileRow,
  { fileId, key, sha256 }: { fileId: string; key: string; sha256: Buffer },
): Promise<{ kind: PutOutcome; unused: string[] }> {
  await tx.query(lockRun, [file.runId]);
  const kept = await tx.query(keepFile, [fileId, key, sha256]);
  if (kept.length === 0) {
    const [row] = await tx.query<{ same: boolean }>(isSame, [fileId, sha256]);
    return { kind: !row ? 'not_found' : row.same ? 'stored' : 'other_bytes', unused: [key] };
  }
  const completed = await tx.query(complete, [file.snapshot_id]);
  if (completed.length === 0) return { kind: 'stored', unused: [] };
  const unused = await deleteSnapshots(tx, file.executionId, { except: file.snapshot_id, which: 'all' });
  return { kind: 'stored', unused };
}
