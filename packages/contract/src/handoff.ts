/** Snapshots: files of a sandbox with which its work can be continued elsewhere. */

import { z } from 'zod';
import { maxSnapshotFileBytes, maxSnapshotFiles } from './limits.ts';
import { NonBlank, TurnNumber } from './primitives.ts';
import { AttachmentInput } from './run-request.ts';

/** A file with which the work of a run can be continued elsewhere. */
export const HandoffAttachment = z
  .object({
    attachment_id: z.string(),
    filename: z.string(),
    download_url: z.string().meta({ description: 'Signed, for 15 minutes' }),
    mime_type: z.string().optional(),
  })
  .meta({ id: 'HandoffAttachment' });

/** `GET /agent/runs/{runId}/handoff/attachments`. */
export const HandoffAttachments = z
  .object({
    attachments: z.array(HandoffAttachment),
  })
  .meta({ id: 'HandoffAttachments' });
export type HandoffAttachments = z.infer<typeof HandoffAttachments>;

/** A file of a snapshot that is announced. */
export const SnapshotFile = z
  .object({
    filename: NonBlank.max(255),
    mime_type: AttachmentInput.shape.mime_type.optional(),
    size_bytes: z.int().min(0).max(maxSnapshotFileBytes),
  })
  .meta({ id: 'SnapshotFile' });

/** Where to PUT a file of a snapshot. */
export const SnapshotUpload = z
  .object({
    filename: z.string(),
    upload_url: z.string().meta({ description: 'Signed, for one PUT of the bytes' }),
  })
  .meta({ id: 'SnapshotUpload' });

/** `POST /harness-support/upload-snapshot`: the files of a snapshot, whose bytes are PUT one by one. */
export const UploadSnapshot = z
  .object({
    turn: TurnNumber,
    files: z.array(SnapshotFile).max(maxSnapshotFiles),
  })
  .meta({ id: 'UploadSnapshot' });
export type UploadSnapshot = z.infer<typeof UploadSnapshot>;

export const UploadSnapshotResponse = z
  .object({
    files: z.array(SnapshotUpload),
  })
  .meta({ id: 'UploadSnapshotResponse' });
export type UploadSnapshotResponse = z.infer<typeof UploadSnapshotResponse>;
