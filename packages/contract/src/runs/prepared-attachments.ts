/** Files that a caller uploads before sending the follow-up that names them. */
import { z } from 'zod';
import { maxPreparedOfFollowup } from '../limits.ts';
import { AttachmentInput } from './run-request.ts';

/** `POST /agent/runs/{runId}/attachments/prepare`, and the same request for a conversation. */
export const PrepareAttachmentsRequest = z
  .object({
    files: z
      .array(
        z
          .object({
            filename: AttachmentInput.shape.file_name,
            mime_type: AttachmentInput.shape.mime_type,
          })
          .meta({ id: 'AttachmentFileInfo', description: 'A file to upload' }),
      )
      .min(1)
      .max(maxPreparedOfFollowup)
      .describe(`Files to upload, at most ${maxPreparedOfFollowup}`),
  })
  .meta({ id: 'PrepareAttachmentsRequest', description: 'Files to upload before a follow-up names them' });

const UploadTarget = z
  .object({
    url: z.string().describe('The same as upload_url'),
    method: z.literal('PUT').describe('Method of the upload'),
    headers: z.record(z.string(), z.string()).describe('Headers of the upload'),
    fields: z.array(z.unknown()).max(0).describe('Fields of a form: always empty, because the bytes are the body'),
  })
  .meta({ id: 'UploadTarget', description: 'How to upload a file' });

export const PrepareAttachmentsResponse = z
  .object({
    attachments: z
      .array(
        z
          .object({
            attachment_id: z.string().describe('Id that a follow-up names, once the bytes are there'),
            upload_url: z.string().describe('Signed, for 15 minutes and one PUT of the bytes'),
            upload_target: UploadTarget,
          })
          .meta({ id: 'AttachmentUpload', description: 'Where to upload a file' }),
      )
      .describe('Where to upload each file, in the order of the request'),
  })
  .meta({ id: 'PrepareAttachmentsResponse', description: 'Where to upload the files' });
export type PrepareAttachmentsResponse = z.infer<typeof PrepareAttachmentsResponse>;
