import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';
import type { StoredAttachment } from './store.ts';

const insertRows = defineStatement({
  name: 'insert_attachments',
  text: `
    INSERT INTO attachments (id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, content, blob_key)
    SELECT a.id, a.run_id, a.followup_id, a.position, a.file_name, a.mime_type, a.size_bytes, a.sha256, a.content, a.blob_key
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::text[], $6::text[], $7::bigint[], $8::bytea[], $9::bytea[],
      $10::text[]) AS a(id, run_id, followup_id, position, file_name, mime_type, size_bytes, sha256, content, blob_key)`,
  row: {},
});

/** The request of a run, or one of its follow-ups. */
interface AttachmentOwner {
  readonly runId: string;
  readonly followupId?: string;
}

/** An attachment with its place in its request. */
type PlacedAttachment = AttachmentOwner & { readonly position: number; readonly file: StoredAttachment };

const place = (owner: AttachmentOwner, files: readonly StoredAttachment[]): PlacedAttachment[] =>
  files.map((file, position) => ({ ...owner, position, file }));

async function insertPlaced(tx: Queryable, placed: readonly PlacedAttachment[]): Promise<void> {
  if (placed.length === 0) return;
  const column = <T>(of: (each: PlacedAttachment) => T): T[] => placed.map(of);
  await tx.query(insertRows, [
    column(({ file }) => file.id),
    column(({ runId }) => runId),
    column(({ followupId = null }) => followupId),
    column(({ position }) => position),
    column(({ file }) => file.fileName),
    column(({ file }) => file.mimeType),
    column(({ file }) => file.sizeBytes),
    column(({ file }) => file.sha256),
    column(({ file }) => file.content),
    column(({ file }) => file.blobKey),
  ]);
}

/** Writes the rows of the attachments of a run's request, or of one of its follow-ups. The bytes of large ones are stored already. */
export async function insertAttachments(
  tx: Queryable,
  owner: AttachmentOwner,
  attachments: readonly StoredAttachment[],
): Promise<void> {
  await insertPlaced(tx, place(owner, attachments));
}

/** Writes the rows of the attachments of the requests of several runs in one statement. */
export async function insertAttachmentsOfRuns(
  tx: Queryable,
  runs: readonly { readonly id: string; readonly attachments: readonly StoredAttachment[] }[],
): Promise<void> {
  await insertPlaced(
    tx,
    runs.flatMap(({ id, attachments }) => place({ runId: id }, attachments)),
  );
}
