/** Snapshots: files of a sandbox with which its work can be continued elsewhere. */

import { z } from 'zod';
import { maxSnapshotFileBytes, maxSnapshotFiles } from './limits.ts';
import { NonBlank, TurnNumber } from './primitives.ts';
import { AttachmentInput } from './run-request.ts';

/** `GET /agent/runs/{runId}/handoff/attachments`. */
export const HandoffAttachments = z
  .object({
    attachments: z.array(
      z.object({
        attachment_id: z.string(),
        filename: z.string(),
        download_url: z.string().meta({ description: 'Signed, for 15 minutes' }),
        mime_type: z.string().optional(),
      }),
    ),
  })
  .meta({ id: 'HandoffAttachments' });
export type HandoffAttachments = z.infer<typeof HandoffAttachments>;

/** `POST /harness-support/upload-snapshot`: the files of a snapshot, whose bytes are PUT one by one. */
export const UploadSnapshot = z
  .object({
    turn: TurnNumber,
    files: z
      .array(
        z.object({
          filename: NonBlank.max(255),
          mime_type: AttachmentInput.shape.mime_type.optional(),
          size_bytes: z.int().min(0).max(maxSnapshotFileBytes),
        }),
      )
      .max(maxSnapshotFiles),
  })
  .meta({ id: 'UploadSnapshot' });
export type UploadSnapshot = z.infer<typeof UploadSnapshot>;

export const UploadSnapshotResponse = z
  .object({
    files: z.array(
      z.object({
        filename: z.string(),
        upload_url: z.string().meta({ description: 'Signed, for one PUT of the bytes' }),
      }),
    ),
  })
  .meta({ id: 'UploadSnapshotResponse' });
export type UploadSnapshotResponse = z.infer<typeof UploadSnapshotResponse>;
