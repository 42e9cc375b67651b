/** Snapshots: files from a sandbox for a person who continues the work of the run outside of the sandbox. */

import { z } from 'zod';
import { maxSnapshotFileBytes, maxSnapshotFiles } from '../limits.ts';
import { NonBlank, TurnNumber } from '../wire/primitives.ts';
import { AttachmentInput } from './run-request.ts';

/** A file for a person who continues the work of a run outside of its sandbox. */
export const HandoffAttachment = z
  .object({
    attachment_id: z.string().describe('Id of the file'),
    filename: z.string().describe('Name of the file'),
    size_bytes: z.int().describe('Size in bytes'),
    download_url: z.string().meta({ description: 'Signed, for 15 minutes' }),
    mime_type: z.string().optional().describe('Media type of the file'),
  })
  .meta({ id: 'HandoffAttachment', description: 'A file for continuing the work of a run elsewhere' });

/** `GET /agent/runs/{runId}/handoff/attachments`. */
export const HandoffAttachments = z
  .object({
    attachments: z.array(HandoffAttachment).describe('Files of the latest snapshot; empty if the run saved no files'),
  })
  .meta({ id: 'HandoffAttachments', description: "Files for continuing a run's work elsewhere" });
export type HandoffAttachments = z.infer<typeof HandoffAttachments>;

/** A file that an agent announces before it uploads the snapshot. */
export const SnapshotFile = z
  .object({
    filename: NonBlank.max(255).describe('Name of the file, at most 255 characters'),
    mime_type: AttachmentInput.shape.mime_type.optional().describe('Media type of the file'),
    size_bytes: z.int().min(0).max(maxSnapshotFileBytes).describe('Size in bytes, at most 25 MB'),
  })
  .meta({ id: 'SnapshotFile', description: 'A file of a snapshot that is announced' });

/** Address for the PUT of a file of a snapshot. */
export const SnapshotUpload = z
  .object({
    filename: z.string().describe('Name of the file'),
    upload_url: z.string().meta({ description: 'Signed, for one PUT of the bytes' }),
  })
  .meta({ id: 'SnapshotUpload', description: 'Where to PUT a file of a snapshot' });

/** `POST /harness-support/upload-snapshot`: the list of files of a snapshot. The agent then sends the bytes of each file with PUT. */
export const UploadSnapshot = z
  .object({
    turn: TurnNumber.describe('Turn at whose end the snapshot was made'),
    files: z.array(SnapshotFile).max(maxSnapshotFiles).describe('Files of the snapshot, at most 100'),
  })
  .meta({ id: 'UploadSnapshot', description: 'A snapshot to begin' });
export type UploadSnapshot = z.infer<typeof UploadSnapshot>;

export const UploadSnapshotResponse = z
  .object({
    files: z.array(SnapshotUpload).describe('Where to PUT each file, in the order of the request'),
  })
  .meta({ id: 'UploadSnapshotResponse', description: 'Where to PUT the files of a snapshot' });
export type UploadSnapshotResponse = z.infer<typeof UploadSnapshotResponse>;
