import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import type { StoredAttachment } from './store.ts';

const insertRows = defineStatement({
  name: 'insert_attachments',
  text: `
    INSERT INTO attachments (id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, blob_key)
    SELECT a.id, $1, $2, a.position, a.file_name, a.mime_type, a.size_bytes, decode(a.sha256, 'hex'), a.blob_key
    FROM jsonb_to_recordset($3::jsonb) AS a(id uuid, position integer, file_name text, mime_type text, size_bytes bigint, sha256 text, blob_key text)`,
  row: {},
});

/** Writes the rows of the attachments of a run's request, or of one of its follow-ups. Their bytes are stored already. */
export async function insertAttachments(
  tx: Queryable,
  owner: { readonly runId: string; readonly followupId?: string },
  attachments: readonly StoredAttachment[],
): Promise<void> {
  if (attachments.length === 0) return;
  const rows = attachments.map((attachment, position) => ({
    id: attachment.id,
    position,
    file_name: attachment.fileName,
    mime_type: attachment.mimeType,
    size_bytes: attachment.sizeBytes,
    sha256: attachment.sha256.toString('hex'),
    blob_key: attachment.blobKey,
  }));
  await tx.query(insertRows, [owner.runId, owner.followupId ?? null, JSON.stringify(rows)]);
}
