/** Attachments in the form that the agent receives. */
import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';

/** Columns of `attachments` that the agent's form is made of. */
export interface AttachmentRow {
  readonly id: string;
  readonly file_name: string;
  readonly mime_type: string;
  readonly size_bytes: number;
}

/** Returns SQL for a JSON array of `AttachmentRow`s, in the order of their request: the rows `a` of `attachments` that meet the condition. */
export const attachmentsOf = (condition: string): string => `
  coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.id, 'file_name', a.file_name, 'mime_type', a.mime_type, 'size_bytes', a.size_bytes) ORDER BY a.position)
    FROM attachments a WHERE ${condition}), '[]')`;

/** Returns the attachment as the agent receives it, with the path where it downloads the bytes. */
export const agentAttachment = ({ id, file_name, mime_type, size_bytes }: AttachmentRow): AgentAttachment => ({
  file_name,
  mime_type,
  size_bytes,
  path: `/api/v1/harness-support/attachments/${id}`,
});
