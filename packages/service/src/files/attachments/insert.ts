import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import type { StoredAttachment } from './store.ts';

const insertRows = defineStatement({
  name: 'insert_attachments',
  text: `
    INSERT INTO attachments (id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, blob_key)
    SELECT a.id, a.run_id, a.followup_id, a.position, a.file_name, a.mime_type, a.size_bytes, decode(a.sha256, 'hex'), a.blob_key
    FROM jsonb_to_recordset($1::jsonb) AS a(id uuid, run_id uuid, followup_id uuid, position integer, file_name text, mime_type text,
      size_bytes bigint, sha256 text, blob_key text)`,
  row: {},
});

/** The request of a run, or one of its follow-ups. */
interface AttachmentOwner {
  readonly runId: string;
  readonly followupId?: string;
}

const toRows = ({ runId, followupId }: AttachmentOwner, attachments: readonly StoredAttachment[]) =>
  attachments.map((attachment, position) => ({
    id: attachment.id,
    run_id: runId,
    followup_id: followupId,
    position,
    file_name: attachment.fileName,
    mime_type: attachment.mimeType,
    size_bytes: attachment.sizeBytes,
    sha256: attachment.sha256.toString('hex'),
    blob_key: attachment.blobKey,
  }));

/** Writes the rows of the attachments of a run's request, or of one of its follow-ups. Their bytes are stored already. */
export async function insertAttachments(
  tx: Queryable,
  owner: AttachmentOwner,
  attachments: readonly StoredAttachment[],
): Promise<void> {
  if (attachments.length > 0) await tx.query(insertRows, [JSON.stringify(toRows(owner, attachments))]);
}

/** Writes the rows of the attachments of the requests of several runs in one statement. */
export async function insertAttachmentsOfRuns(
  tx: Queryable,
  runs: readonly { readonly id: string; readonly attachments: readonly StoredAttachment[] }[],
): Promise<void> {
  const rows = runs.flatMap(({ id, attachments }) => toRows({ runId: id }, attachments));
  if (rows.length > 0) await tx.query(insertRows, [JSON.stringify(rows)]);
}
