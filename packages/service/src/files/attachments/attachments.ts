import type { Queryable } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** A file that came with the prompt of a run. */
export interface RunAttachment {
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly blobKey: string;
}

/** Null: the run has no such attachment. */
export async function findAttachment(
  db: Queryable,
  runId: string,
  attachmentId: string,
): Promise<RunAttachment | null> {
  if (!isUuid(attachmentId)) return null;
  const [row] = await db.query<RunAttachment>(
    `SELECT file_name AS "fileName", mime_type AS "mimeType", size_bytes AS "sizeBytes", blob_key AS "blobKey"
     FROM attachments WHERE id = $1 AND run_id = $2`,
    [attachmentId, runId],
  );
  return row ?? null;
}
