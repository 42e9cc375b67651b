import { z } from 'zod';
import { Timestamp } from './primitives.ts';

const PlanData = z
  .object({
    document_uid: z.string(),
    artifact_uid: z.string().optional(),
    notebook_uid: z.string().optional(),
    title: z.string().optional(),
    url: z.string().optional(),
  })
  .meta({ id: 'PlanData' });
const PullRequestData = z
  .object({
    url: z.string(),
    branch: z.string(),
  })
  .meta({ id: 'PullRequestData' });
const ScreenshotData = z
  .object({
    artifact_uid: z.string(),
    mime_type: z.string(),
    description: z.string().optional(),
  })
  .meta({ id: 'ScreenshotData' });
const FileData = z
  .object({
    artifact_uid: z.string(),
    filename: z.string(),
    filepath: z.string().meta({ description: 'Relative to the workspace of the run, without `..`' }),
    mime_type: z.string(),
    size_bytes: z.int().optional(),
    description: z.string().optional(),
    title: z.string().optional(),
  })
  .meta({ id: 'FileData' });
const ExternalReferenceData = z
  .object({
    reference_type: z.string(),
    url: z.string().meta({ description: 'As the run reported it. Searches use its canonical form' }),
    title: z.string().optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: 'ExternalReferenceData' });

const created = { created_at: Timestamp };

const PlanArtifact = z
  .object({
    artifact_type: z.literal('PLAN'),
    ...created,
    data: PlanData,
  })
  .meta({ id: 'PlanArtifact' });
const PullRequestArtifact = z
  .object({
    artifact_type: z.literal('PULL_REQUEST'),
    ...created,
    data: PullRequestData,
  })
  .meta({ id: 'PullRequestArtifact' });
const ScreenshotArtifact = z
  .object({
    artifact_type: z.literal('SCREENSHOT'),
    ...created,
    data: ScreenshotData,
  })
  .meta({ id: 'ScreenshotArtifact' });
const FileArtifact = z
  .object({
    artifact_type: z.literal('FILE'),
    ...created,
    data: FileData,
  })
  .meta({ id: 'FileArtifact' });
const ExternalReferenceArtifact = z
  .object({
    artifact_type: z.literal('EXTERNAL_REFERENCE'),
    ...created,
    data: ExternalReferenceData,
  })
  .meta({ id: 'ExternalReferenceArtifact' });

/** An artifact in a RunItem. */
export const ArtifactItem = z
  .discriminatedUnion('artifact_type', [
    PlanArtifact,
    PullRequestArtifact,
    ScreenshotArtifact,
    FileArtifact,
    ExternalReferenceArtifact,
  ])
  .meta({ id: 'ArtifactItem', description: 'Something that a run produced' });
export type ArtifactItem = z.infer<typeof ArtifactItem>;

const download = {
  content_type: z.string(),
  download_url: z.string().meta({ description: 'Signed, for 15 minutes' }),
  expires_at: Timestamp,
};
const read = {
  artifact_uid: z.string(),
  ...created,
  is_public: z
    .literal(true)
    .optional()
    .meta({ description: 'Present if everyone may read the artifact; shown to its team only' }),
};

const FileDownload = z
  .object({
    ...download,
    filename: z.string(),
    filepath: z.string().optional().meta({ description: 'Absent for a reader without a key' }),
    size_bytes: z.int().optional(),
    description: z.string().optional(),
    title: z.string().optional(),
  })
  .meta({ id: 'FileDownload' });
const ScreenshotDownload = z
  .object({
    ...download,
    description: z.string().optional(),
  })
  .meta({ id: 'ScreenshotDownload' });
const PlanContent = z
  .object({
    content: z.string(),
    content_type: z.string(),
    document_uid: z.string(),
    notebook_uid: z.string(),
    title: z.string().optional(),
    url: z.string().optional(),
  })
  .meta({ id: 'PlanContent' });

const FileArtifactResponse = z
  .object({
    artifact_type: z.literal('FILE'),
    ...read,
    data: FileDownload,
  })
  .meta({ id: 'FileArtifactResponse' });
const ScreenshotArtifactResponse = z
  .object({
    artifact_type: z.literal('SCREENSHOT'),
    ...read,
    data: ScreenshotDownload,
  })
  .meta({ id: 'ScreenshotArtifactResponse' });
const PlanArtifactResponse = z
  .object({
    artifact_type: z.literal('PLAN'),
    ...read,
    data: PlanContent,
  })
  .meta({ id: 'PlanArtifactResponse' });

/** Answer to the read of one artifact. */
export const ArtifactResponse = z
  .discriminatedUnion('artifact_type', [FileArtifactResponse, ScreenshotArtifactResponse, PlanArtifactResponse])
  .meta({ id: 'ArtifactResponse', description: 'A signed download URL, or the content of a plan' });
export type ArtifactResponse = z.infer<typeof ArtifactResponse>;

/** Answer to sharing an artifact, and to unsharing it. */
export const ArtifactSharing = z
  .object({
    artifact_uid: z.string(),
    is_public: z.boolean(),
    public_url: z
      .string()
      .optional()
      .meta({ description: 'URL at which anyone can read the artifact without a key while it is public' }),
  })
  .meta({ id: 'ArtifactSharing' });
export type ArtifactSharing = z.infer<typeof ArtifactSharing>;

export const RunByExternalReferenceResponse = z
  .object({
    run_id: z.string(),
  })
  .meta({ id: 'RunByExternalReferenceResponse' });
