import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { StoredAttachment } from './store.ts';

/** Name of the file with the payload of the event that started a run. */
export const payloadFile = 'event-payload.json';

const columns = `id, file_name AS "fileName", mime_type AS "mimeType", size_bytes AS "sizeBytes", sha256, content, blob_key AS "blobKey"`;
const row = {
  id: uuid,
  fileName: text(),
  mimeType: text(),
  sizeBytes: integer,
  sha256: bytes,
  content: nullable(bytes),
  blobKey: nullable(text()),
};

/** A constraint of the table guarantees that the bytes are in exactly one place. */
function toAttachment({ content, blobKey, ...found }: RowOf<typeof readOne>): StoredAttachment {
  if (content !== null) return { ...found, content, blobKey: null };
  if (blobKey !== null) return { ...found, content: null, blobKey };
  throw new Error(`the attachment ${found.id} has no bytes`);
}

const readOne = defineStatement({
  name: 'read_attachment',
  text: `SELECT ${columns} FROM attachments WHERE id = $1 AND run_id = $2`,
  row,
});

/**
 * Reads an attachment of the run's request or of one of its follow-ups; null if there is none with this id. The id may be any text.
 */
export async function findAttachment(
  db: Queryable,
  runId: string,
  attachmentId: string,
): Promise<StoredAttachment | null> {
  if (!isUuid(attachmentId)) return null;
  const [attachment] = await db.query(readOne, [attachmentId, runId]);
  return attachment ? toAttachment(attachment) : null;
}

const readOfRequest = defineStatement({
  name: 'read_attachments_of_request',
  text: `SELECT ${columns} FROM attachments WHERE run_id = $1 AND followup_id IS NULL ORDER BY position`,
  row,
});

/** Reads the attachments of the run's request, in the order of the request, without the attachments of follow-ups. */
export async function readAttachmentsOfRequest(db: Queryable, runId: string): Promise<StoredAttachment[]> {
  return (await db.query(readOfRequest, [runId])).map(toAttachment);
}

/** Columns of `attachments` that are needed to describe an attachment to the agent. */
export interface AttachmentRow {
  readonly id: string;
  readonly file_name: string;
  readonly mime_type: string;
  readonly size_bytes: number;
}

/**
 * Returns SQL for a JSON array of `AttachmentRow`s: the rows `a` of `attachments` that meet the condition, in the order of their request.
 */
export const attachmentsOf = (condition: string): string => `
  coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.id, 'file_name', a.file_name, 'mime_type', a.mime_type, 'size_bytes', a.size_bytes) ORDER BY a.position)
    FROM attachments a WHERE ${condition}), '[]')`;

/** Returns the attachment as the agent receives it, with the path from which the agent downloads the bytes. */
export const agentAttachment = ({ id, file_name, mime_type, size_bytes }: AttachmentRow): AgentAttachment => ({
  file_name,
  mime_type,
  size_bytes,
  path: `/api/v1/harness-support/attachments/${id}`,
});
