import { z } from 'zod';
import { Timestamp } from '../wire/primitives.ts';

const PlanData = z
  .object({
    document_uid: z.string().describe("UID of the plan's document"),
    artifact_uid: z
      .string()
      .optional()
      .describe('UID of the artifact; read it with `GET /agent/artifacts/{artifactUid}`'),
    notebook_uid: z.string().optional().describe("UID of the plan's notebook"),
    title: z.string().optional().describe('Title of the plan'),
    url: z.string().optional().describe('Page of the plan'),
  })
  .meta({ id: 'PlanData', description: 'A plan' });
const PullRequestData = z
  .object({
    url: z.string().describe('Page of the pull request'),
    branch: z.string().describe('Branch that it asks to merge'),
    status: z
      .literal('unknown')
      .describe('State of the pull request. `unknown`: the service does not follow it on the code host'),
  })
  .meta({ id: 'PullRequestData', description: 'A pull request' });
const ScreenshotData = z
  .object({
    artifact_uid: z.string().describe('UID of the artifact; read it with `GET /agent/artifacts/{artifactUid}`'),
    mime_type: z.string().describe('Media type of the picture'),
    description: z.string().optional().describe('What it shows or contains'),
  })
  .meta({ id: 'ScreenshotData', description: 'A picture of a screen' });
const FileData = z
  .object({
    artifact_uid: z.string().describe('UID of the artifact; read it with `GET /agent/artifacts/{artifactUid}`'),
    filename: z.string().describe('Name of the file'),
    filepath: z.string().meta({ description: 'Relative to the workspace of the run, without `..`' }),
    mime_type: z.string().describe('Media type of the file'),
    size_bytes: z.int().optional().describe('Size in bytes'),
    description: z.string().optional().describe('What it shows or contains'),
    title: z.string().optional().describe('Title that the agent gave it'),
    output_of_action: z
      .string()
      .optional()
      .describe('Id of the action whose whole output it is; absent: the agent reported the file'),
  })
  .meta({ id: 'FileData', description: 'A file' });
const ExternalReferenceData = z
  .object({
    reference_type: z.string().describe("Kind of the linked thing, such as `issue`, in the agent's words"),
    url: z.string().meta({ description: 'As the run reported it. Searches use its canonical form' }),
    title: z.string().optional().describe('Title that the agent gave it'),
    metadata: z.record(z.string(), z.unknown()).optional().describe('Any data that the agent added'),
  })
  .meta({ id: 'ExternalReferenceData', description: 'Something elsewhere that the run made or worked on' });

const created = { created_at: Timestamp };

const PlanArtifact = z
  .object({
    artifact_type: z.literal('PLAN').describe('Kind of the artifact'),
    ...created,
    data: PlanData.describe('The plan'),
  })
  .meta({ id: 'PlanArtifact', description: 'A plan that a run made' });
const PullRequestArtifact = z
  .object({
    artifact_type: z.literal('PULL_REQUEST').describe('Kind of the artifact'),
    ...created,
    data: PullRequestData.describe('The pull request'),
  })
  .meta({ id: 'PullRequestArtifact', description: 'A pull request that a run opened' });
const ScreenshotArtifact = z
  .object({
    artifact_type: z.literal('SCREENSHOT').describe('Kind of the artifact'),
    ...created,
    data: ScreenshotData.describe('The picture'),
  })
  .meta({ id: 'ScreenshotArtifact', description: 'A picture that a run made' });
const FileArtifact = z
  .object({
    artifact_type: z.literal('FILE').describe('Kind of the artifact'),
    ...created,
    data: FileData.describe('The file'),
  })
  .meta({ id: 'FileArtifact', description: 'A file that a run made' });
const ExternalReferenceArtifact = z
  .object({
    artifact_type: z.literal('EXTERNAL_REFERENCE').describe('Kind of the artifact'),
    ...created,
    data: ExternalReferenceData.describe('What it refers to'),
  })
  .meta({ id: 'ExternalReferenceArtifact', description: 'Something elsewhere that a run reported' });

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
  content_type: z.string().describe('Media type of the bytes'),
  download_url: z.string().meta({ description: 'Signed, for 15 minutes' }),
  expires_at: Timestamp.describe('When the URL stops working, RFC 3339 in UTC'),
  sha256: z.string().optional().describe('SHA-256 of the bytes, 64 hexadecimal digits'),
};
const read = {
  artifact_uid: z.string().describe('UID of the artifact'),
  ...created,
  is_public: z
    .literal(true)
    .optional()
    .meta({ description: 'Present if everyone may read the artifact; shown to its team only' }),
};

const SourceLinks = z
  .object({
    run_url: z.string().optional().describe('Page of the run that produced it'),
    pull_request_urls: z.array(z.string()).describe('Pull requests of that run, oldest first'),
  })
  .meta({ id: 'SourceLinks', description: 'The run that produced an artifact, and its pull requests' });
const sourced = { source_links: SourceLinks.optional().describe('Absent for readers outside of the team') };

const FileDownload = z
  .object({
    ...download,
    filename: z.string().describe('Name of the file'),
    filepath: z.string().optional().meta({ description: 'Absent for a reader without a key' }),
    size_bytes: z.int().optional().describe('Size in bytes'),
    description: z.string().optional().describe('What it shows or contains'),
    title: z.string().optional().describe('Title that the agent gave it'),
  })
  .meta({ id: 'FileDownload', description: 'Download address of a file' });
const ScreenshotDownload = z
  .object({
    ...download,
    description: z.string().optional().describe('What it shows or contains'),
  })
  .meta({ id: 'ScreenshotDownload', description: 'Download address of a picture' });
const PlanContent = z
  .object({
    content: z.string().describe('The plan, as Markdown'),
    content_type: z.string().describe('Media type of `content`'),
    document_uid: z.string().describe("UID of the plan's document"),
    notebook_uid: z.string().describe("UID of the plan's notebook"),
    title: z.string().optional().describe('Title of the plan'),
    url: z.string().optional().describe('Page of the plan'),
  })
  .meta({ id: 'PlanContent', description: 'A plan with its text' });

const FileArtifactResponse = z
  .object({
    artifact_type: z.literal('FILE').describe('Kind of the artifact'),
    ...read,
    ...sourced,
    data: FileDownload,
  })
  .meta({ id: 'FileArtifactResponse', description: 'A file artifact with a download URL' });
const ScreenshotArtifactResponse = z
  .object({
    artifact_type: z.literal('SCREENSHOT').describe('Kind of the artifact'),
    ...read,
    ...sourced,
    data: ScreenshotDownload,
  })
  .meta({ id: 'ScreenshotArtifactResponse', description: 'A screenshot artifact with a download URL' });
const PlanArtifactResponse = z
  .object({
    artifact_type: z.literal('PLAN').describe('Kind of the artifact'),
    ...read,
    data: PlanContent,
  })
  .meta({ id: 'PlanArtifactResponse', description: 'A plan artifact with its content' });

/** Answer to a request for one artifact. */
export const ArtifactResponse = z
  .discriminatedUnion('artifact_type', [FileArtifactResponse, ScreenshotArtifactResponse, PlanArtifactResponse])
  .meta({ id: 'ArtifactResponse', description: 'A signed download URL, or the content of a plan' });
export type ArtifactResponse = z.infer<typeof ArtifactResponse>;

const PreviewKind = z.enum(['image', 'text', 'frame', 'none']).meta({
  id: 'PreviewKind',
  description:
    '`image`: PNG, JPEG, GIF or WebP. `text`: any other text. `frame`: HTML or SVG. `none`: the file can only be downloaded',
});

/** How a page can show an artifact. */
export const ArtifactPreview = z
  .object({
    kind: PreviewKind,
    url: z
      .string()
      .optional()
      .describe(
        'Signed, for 15 minutes. `image` and `text`: path of this service. `frame`: URL of RUNYARD_FILES_URL, for an `<iframe sandbox>`. Absent: there is no preview',
      ),
    expires_at: Timestamp.optional().describe('When the URL stops working, RFC 3339 in UTC'),
    content_type: z.string().optional().describe('Media type of the preview, by the first bytes of the file'),
    size_bytes: z.int().describe('Size of the file in bytes'),
    shown_bytes: z.int().optional().describe('Bytes of the preview. A long text is cut, also inside a character'),
    reason: z.string().optional().describe('The reason for people why there is no preview'),
  })
  .meta({ id: 'ArtifactPreview', description: 'How a page can show an artifact' });
export type ArtifactPreview = z.infer<typeof ArtifactPreview>;

/** Answer to the requests that begin and end the sharing of an artifact. */
export const ArtifactSharing = z
  .object({
    artifact_uid: z.string().describe('UID of the artifact'),
    is_public: z.boolean().describe('True: everyone may read the artifact without a key'),
    public_url: z
      .string()
      .optional()
      .meta({ description: 'URL at which everyone can read the artifact without a key while it is public' }),
  })
  .meta({ id: 'ArtifactSharing', description: 'Whether an artifact is public' });
export type ArtifactSharing = z.infer<typeof ArtifactSharing>;

export const RunByExternalReferenceResponse = z
  .object({
    run_id: z.string().describe('Id of the run'),
  })
  .meta({ id: 'RunByExternalReferenceResponse', description: 'The run that reported an external reference' });
