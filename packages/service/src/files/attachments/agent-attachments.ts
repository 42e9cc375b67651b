/** Attachments as the agent is told of them. */
import type { AgentAttachment } from '@runyard/contract/agent-protocol';

export interface AttachmentRow {
  readonly id: string;
  readonly file_name: string;
  readonly mime_type: string;
  readonly size_bytes: number;
}

/** SQL for the `AttachmentRow`s, as a JSON array, of those rows `a` of `attachments` for which `condition` holds; in the order in which they came. */
export const attachmentsOf = (condition: string): string => `
  coalesce((SELECT jsonb_agg(jsonb_build_object('id', a.id, 'file_name', a.file_name, 'mime_type', a.mime_type, 'size_bytes', a.size_bytes) ORDER BY a.position)
    FROM attachments a WHERE ${condition}), '[]')`;

export const agentAttachment = ({ id, file_name, mime_type, size_bytes }: AttachmentRow): AgentAttachment => ({
  file_name,
  mime_type,
  size_bytes,
  path: `/api/v1/harness-support/attachments/${id}`,
});
