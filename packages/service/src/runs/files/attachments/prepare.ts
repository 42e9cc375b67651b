/** Stores files that a caller uploads before the follow-up that names them. */
import { randomUUIDv7 } from 'node:crypto';
import { maxPreparedOfCaller, maxPreparedOfTeam } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { bytes, defineStatement, integer, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { StoredAttachment } from './store.ts';

/** A person or a service account of the team. */
interface Caller {
  readonly teamId: string;
  readonly creator: { readonly kind: string; readonly uid: string };
}

/**
 * Locks the prepared files of the team. So if two requests are concurrent, the later request also counts the files of the earlier
 * request.
 */
const lockTeam = defineStatement({
  name: 'lock_prepared_attachments_of_team',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('prepared attachments ' || $1, 0))`,
  row: {},
});

const countUnused = defineStatement({
  name: 'count_prepared_attachments',
  text: `
    SELECT count(*) AS team, count(*) FILTER (WHERE created_by_kind = $2 AND created_by_uid = $3) AS caller
    FROM prepared_attachments WHERE team_id = $1`,
  row: { team: integer, caller: integer },
});

/** Inserts the rows; inserts nothing if the run does not belong to the team. */
const insertRows = defineStatement({
  name: 'insert_prepared_attachments',
  text: `
    INSERT INTO prepared_attachments (id, team_id, run_id, created_by_kind, created_by_uid, file_name, mime_type)
    SELECT f.id, r.team_id, r.id, $3, $4, f.file_name, f.mime_type
    FROM runs r, jsonb_to_recordset($5::jsonb) AS f(id uuid, file_name text, mime_type text)
    WHERE r.id = $1 AND r.team_id = $2 RETURNING id`,
  row: { id: uuid },
});

/** `prepared`: the ids of the files, in the order of the request; `full`: the caller or the team has too many unused files. */
export type PrepareOutcome =
  | { readonly kind: 'prepared'; readonly ids: readonly string[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'full'; readonly of: 'caller' | 'team' };

/** Writes the rows of files whose bytes are uploaded later. */
export async function prepareAttachments(
  tx: Queryable,
  { teamId, creator }: Caller,
  runId: string,
  files: readonly { readonly filename: string; readonly mime_type: string }[],
): Promise<PrepareOutcome> {
  if (!isUuid(runId)) return { kind: 'not_found' };
  await tx.query(lockTeam, [teamId]);
  const [unused] = await tx.query(countUnused, [teamId, creator.kind, creator.uid]);
  if ((unused?.caller ?? 0) + files.length > maxPreparedOfCaller) return { kind: 'full', of: 'caller' };
  if ((unused?.team ?? 0) + files.length > maxPreparedOfTeam) return { kind: 'full', of: 'team' };
  const rows = files.map(({ filename, mime_type }) => ({ id: randomUUIDv7(), file_name: filename, mime_type }));
  const written = await tx.query(insertRows, [runId, teamId, creator.kind, creator.uid, JSON.stringify(rows)]);
  return written.length === 0 ? { kind: 'not_found' } : { kind: 'prepared', ids: rows.map(({ id }) => id) };
}

/** Locks rows in the same order as uploads of other files: first the run, then the rows of its files. */
const lockRun = defineStatement({
  name: 'lock_run_of_prepared_attachments',
  text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE',
  row: {},
});

const lockUploaded = defineStatement({
  name: 'lock_uploaded_attachments',
  text: `
    SELECT id, file_name AS "fileName", mime_type AS "mimeType", size_bytes AS "sizeBytes", sha256, blob_key AS "blobKey"
    FROM prepared_attachments
    WHERE run_id = $1 AND created_by_kind = $2 AND created_by_uid = $3 AND id = ANY($4::uuid[]) AND blob_key IS NOT NULL
    FOR UPDATE`,
  row: { id: uuid, fileName: text(), mimeType: text(), sizeBytes: integer, sha256: bytes, blobKey: text() },
});

const deleteRows = defineStatement({
  name: 'delete_prepared_attachments',
  text: 'DELETE FROM prepared_attachments WHERE id = ANY($1::uuid[])',
  row: {},
});

/** A prepared file that a follow-up names. */
export interface NamedAttachment {
  readonly attachmentId: string;
  /** Name that replaces the name under which the file was prepared. */
  readonly fileName?: string | undefined;
}

/** Prepared files whose rows the transaction has locked for a follow-up. */
export interface HeldAttachments {
  readonly attachments: readonly StoredAttachment[];
  /** Deletes the rows of the prepared files. Call it after the rows of the follow-up's attachments are written. */
  use(): Promise<void>;
}

/**
 * Locks uploaded files that the same caller has prepared for the run, until the end of the transaction. If an id is unknown or appears
 * twice, returns the first such id.
 */
export async function holdPrepared(
  tx: Queryable,
  caller: Pick<Caller, 'creator'>,
  runId: string,
  named: readonly NamedAttachment[],
): Promise<HeldAttachments | { readonly unknown: string }> {
  if (named.length === 0) return { attachments: [], use: async () => {} };
  const ids = named.map(({ attachmentId }) => attachmentId);
  const wrong = ids.find((id, index) => !isUuid(id) || ids.indexOf(id) !== index);
  if (wrong !== undefined) return { unknown: wrong };
  await tx.query(lockRun, [runId]);
  const { kind, uid } = caller.creator;
  const uploadedFiles = new Map((await tx.query(lockUploaded, [runId, kind, uid, ids])).map((row) => [row.id, row]));
  const attachments: StoredAttachment[] = [];
  for (const { attachmentId, fileName } of named) {
    const file = uploadedFiles.get(attachmentId);
    if (!file) return { unknown: attachmentId };
    attachments.push({ ...file, content: null, ...(fileName === undefined ? {} : { fileName }) });
  }
  return { attachments, use: async () => void (await tx.query(deleteRows, [ids])) };
}
