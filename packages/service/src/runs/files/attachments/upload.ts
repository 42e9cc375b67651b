import { randomUUIDv7 } from 'node:crypto';
import { maxAttachmentBytes } from '@runyard/contract/limits';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { oneUpload } from '../../../platform/uploads/lease.ts';
import { byteMaskOf } from '../../../team/redaction/agent-text.ts';
import { readGrantedSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { readTeamRoom, type StorageRefusal, teamFull } from '../stored-bytes.ts';
import { blobKeyOf } from './store.ts';

/**
 * Outcome of an upload:
 * - `stored` 200: the bytes are stored now, or the same bytes were already stored.
 * - `not_found` 404; `too_large` 413.
 * - `other_bytes` 409: other bytes were already stored for the file.
 * - `busy` 429: the run already has its maximum number of concurrent uploads.
 */
export type UploadOutcome = 'stored' | 'busy' | 'not_found' | 'too_large' | 'other_bytes' | StorageRefusal;

/** Maximum number of concurrent uploads for a run, because their bytes use disk space before they are counted. */
const maxUploads = 8;

const readRun = defineStatement({
  name: 'read_run_of_prepared_attachment',
  text: 'SELECT run_id AS "runId", team_id AS "teamId" FROM prepared_attachments WHERE id = $1',
  row: { runId: uuid, teamId: uuid },
});

const setBytes = defineStatement({
  name: 'set_bytes_of_prepared_attachment',
  text: `
    UPDATE prepared_attachments SET blob_key = $2, size_bytes = $3, sha256 = $4 WHERE id = $1 AND blob_key IS NULL RETURNING id`,
  row: { id: uuid },
});

const compareBytes = defineStatement({
  name: 'compare_bytes_of_prepared_attachment',
  text: 'SELECT sha256 = $2 AS same FROM prepared_attachments WHERE id = $1',
  row: { same: nullable(boolean) },
});

/** Streams the bytes of a prepared file into the blob store. */
export async function uploadAttachment(
  deps: {
    readonly db: Database;
    readonly blobs: BlobStore;
    readonly vault: Vault;
    readonly executionDeps: Pick<ExecutionDeps, 'db' | 'limits'>;
  },
  attachmentId: string,
  body: AsyncIterable<Uint8Array>,
): Promise<UploadOutcome> {
  const { db, blobs, vault, executionDeps } = deps;
  const [known] = isUuid(attachmentId) ? await db.query(readRun, [attachmentId]) : [];
  if (!known) return 'not_found';
  // The bytes count as stored bytes of the team only when a follow-up uses the file. Until then, only the number of files is limited.
  const room = await readTeamRoom(executionDeps, undefined, known.teamId);
  // Each upload has a separate blob, so that two concurrent uploads do not mix their bytes.
  const key = `${blobKeyOf(attachmentId)}/${randomUUIDv7()}`;
  const kind = { name: `attachments/${known.runId}`, most: maxUploads };
  const mask = byteMaskOf({ vault }, { grantedSecrets: await readGrantedSecrets(db, known.runId) });
  const put = await oneUpload(db, kind, body, (leased) =>
    blobs.put(key, mask.stream(leased), { maxBytes: Math.min(maxAttachmentBytes, room.files) }),
  );
  if (put === 'busy') return 'busy';
  if (put.outcome === 'too_large')
    return room.files < maxAttachmentBytes ? teamFull(executionDeps, room.stored) : 'too_large';
  // Keep the blob after an error, because the statement may have been committed. If it was not, the sweep deletes the blob, because no row
  // names it.
  if ((await db.query(setBytes, [attachmentId, key, put.sizeBytes, put.sha256])).length > 0) return 'stored';
  await blobs.delete(key);
  const [row] = await db.query(compareBytes, [attachmentId, put.sha256]);
  if (!row) return 'not_found';
  return row.same ? 'stored' : 'other_bytes';
}
