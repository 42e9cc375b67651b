import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { StoredAttachment } from './store.ts';

/**
 * Returns the SQL that inserts attachments, for statements that also write other rows. `rows` and `contents` name the parameters that
 * `attachmentParameters` returns.
 */
export const insertAttachmentsOf = (rows: string, contents: string): string => `
  INSERT INTO attachments (id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, content, blob_key)
  SELECT a.id, a.run_id, a.followup_id, a.position, a.file_name, a.mime_type, a.size_bytes, decode(a.sha256, 'hex'), c.content, a.blob_key
  FROM jsonb_to_recordset(${rows}::jsonb) AS a(n bigint, id uuid, run_id uuid, followup_id uuid, position integer, file_name text,
      mime_type text, size_bytes bigint, sha256 text, blob_key text)
    JOIN unnest(${contents}::bytea[]) WITH ORDINALITY AS c(content, n) ON c.n = a.n`;

const insertRows = defineStatement({ name: 'insert_attachments', text: insertAttachmentsOf('$1', '$2'), row: {} });

/** The request that created a run, or a follow-up to a run, together with the files that belong to it. */
interface FilesOfRequest {
  readonly runId: string;
  readonly followupId?: string;
  readonly attachments: readonly StoredAttachment[];
  /** Position of the first one; default: 0. */
  readonly from?: number;
}

/** Returns the parameters of `insertAttachmentsOf`: the rows, and the bytes of the attachments that are stored in their row. */
export function attachmentParameters(requests: readonly FilesOfRequest[]): [rows: string, contents: Buffer] {
  const placed = requests.flatMap(({ runId, followupId, attachments, from = 0 }) =>
    attachments.map((file, index) => ({ runId, followupId, position: from + index, file })),
  );
  const rows = placed.map(({ runId, followupId, position, file }, index) => ({
    n: index + 1,
    id: file.id,
    run_id: runId,
    followup_id: followupId,
    position,
    file_name: file.fileName,
    mime_type: file.mimeType,
    size_bytes: file.sizeBytes,
    sha256: file.sha256.toString('hex'),
    blob_key: file.blobKey,
  }));
  return [JSON.stringify(rows), bytesArray(placed.map(({ file }) => file.content))];
}

/**
 * Writes the rows of the attachments of a run's request or of a follow-up. The bytes of large attachments are already stored.
 */
export async function insertAttachments(tx: Queryable, request: FilesOfRequest): Promise<void> {
  if (request.attachments.length > 0) await tx.query(insertRows, attachmentParameters([request]));
}
