import { randomUUIDv7 } from 'node:crypto';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  nullable,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { byteMaskOf } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { holdSandbox } from '../../executions/lease/agent-lease.ts';
import { deleteReplacedHandoffs } from './begin.ts';

/**
 * Outcome of an upload:
 * - `stored` 200: the bytes are stored now, or the same bytes were already stored.
 * - `not_found` 404.
 * - `too_large` 413 and `too_short` 400: the file does not have the announced size.
 * - `other_bytes` 409: other bytes were already stored for the file.
 * - `busy` 429: the execution already has its maximum number of concurrent uploads.
 */
export type PutOutcome = 'stored' | 'busy' | 'not_found' | 'too_large' | 'too_short' | 'other_bytes';

/**
 * Maximum number of concurrent uploads of an execution. It is limited because the bytes use disk space before they are counted. Runyard's
 * agent sends one file after another.
 */
const maxUploads = 16;

const readFile = defineStatement({
  name: 'read_announced_handoff_file',
  text: `
    SELECT f.snapshot_id AS "handoffId", s.run_id AS "runId", s.execution_id AS "executionId", e.token_hash AS "tokenHash",
      f.size_bytes AS "sizeBytes"
    FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id JOIN executions e ON e.id = s.execution_id WHERE f.id = $1`,
  row: { handoffId: uuid, runId: uuid, executionId: uuid, tokenHash: nullable(bytes), sizeBytes: integer },
});

interface AnnouncedFile {
  readonly handoffId: string;
  readonly runId: string;
  readonly executionId: string;
}

/**
 * Streams the bytes of a file into the blob store. When the last file of a handoff has arrived, the handoff is ready and replaces the older
 * handoff.
 */
export async function putHandoffFile(
  { db, blobs, vault }: { readonly db: Database; readonly blobs: BlobStore; readonly vault: Vault },
  fileId: string,
  body: AsyncIterable<Uint8Array>,
): Promise<PutOutcome> {
  const [file] = isUuid(fileId) ? await db.query(readFile, [fileId]) : [];
  // If an execution has no token, its attempt is over and the next one has not begun. Refuse the file, because the next attempt announces
  // its own files.
  if (!file?.tokenHash) return 'not_found';
  const { executionId, tokenHash, sizeBytes } = file;
  const key = `handoffs/${file.handoffId}/${randomUUIDv7()}`;
  const kind = { name: `handoff/${executionId}`, most: maxUploads };
  const mask = byteMaskOf({ vault }, { grantedSecrets: await readGrantedSecrets(db, file.runId) });
  const put = await oneUpload(db, kind, body, (leased) =>
    holdSandbox(db, { executionId, tokenHash }, () => blobs.put(key, mask.stream(leased), { maxBytes: sizeBytes })),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large') return 'too_large';
  const outcome =
    put.sizeBytes < sizeBytes
      ? { kind: 'too_short' as const, unused: [key] }
      : await db.transaction((tx) => recordFile(tx, file, { fileId, key, sha256: put.sha256 }));
  for (const unused of outcome.unused) await blobs.delete(unused);
  return outcome.kind;
}

/**
 * Locks the run, so that concurrent uploads of the run change its handoffs one after another. The next attempt of the execution deletes
 * the files that this attempt announced.
 */
const lockRun = defineStatement({
  name: 'lock_run_of_handoff_file',
  text: 'SELECT FROM runs WHERE id = $1 FOR NO KEY UPDATE',
  row: {},
});

const setBytes = defineStatement({
  name: 'set_bytes_of_handoff_file',
  text: 'UPDATE snapshot_files SET blob_key = $2, sha256 = $3 WHERE id = $1 AND blob_key IS NULL RETURNING id',
  row: { id: uuid },
});

const compareBytes = defineStatement({
  name: 'compare_bytes_of_handoff_file',
  text: 'SELECT sha256 = $2 AS same FROM snapshot_files WHERE id = $1',
  row: { same: nullable(boolean) },
});

const markReady = defineStatement({
  name: 'mark_handoff_ready',
  text: `
    UPDATE snapshots SET is_ready = true
    WHERE id = $1 AND NOT EXISTS (SELECT FROM snapshot_files WHERE snapshot_id = $1 AND blob_key IS NULL) RETURNING id`,
  row: { id: uuid },
});

/** Records the stored bytes in the file's row. `unused` are the keys of blobs that the caller deletes after the commit. */
async function recordFile(
  tx: Queryable,
  file: AnnouncedFile,
  { fileId, key, sha256 }: { fileId: string; key: string; sha256: Buffer },
): Promise<{ kind: PutOutcome; unused: string[] }> {
  await tx.query(lockRun, [file.runId]);
  const recorded = await tx.query(setBytes, [fileId, key, sha256]);
  if (recorded.length === 0) {
    const [row] = await tx.query(compareBytes, [fileId, sha256]);
    return { kind: !row ? 'not_found' : row.same ? 'stored' : 'other_bytes', unused: [key] };
  }
  const completed = await tx.query(markReady, [file.handoffId]);
  if (completed.length === 0) return { kind: 'stored', unused: [] };
  const unused = await deleteReplacedHandoffs(tx, file.executionId, { except: file.handoffId, which: 'all' });
  return { kind: 'stored', unused };
}
