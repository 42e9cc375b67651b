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
export const PullRequestState = z.enum(['unknown', 'open', 'draft', 'merged', 'closed']).meta({
  id: 'PullRequestState',
  description: 'State of a pull request. unknown: no GitHub App of the team has seen an event of it',
});
export type PullRequestState = z.infer<typeof PullRequestState>;

export const PullRequestChangeType = z
  .enum([
    'opened',
    'code_push',
    'review_approved',
    'review_changes_requested',
    'review_commented',
    'comment',
    'review_comment',
    'pr_action',
    'checks_completed',
  ])
  .meta({
    id: 'PullRequestChangeType',
    description:
      'Kind of change of a pull request. pr_action: any other change, such as a label, an assignment or a merge',
  });
export type PullRequestChangeType = z.infer<typeof PullRequestChangeType>;

/** An account on GitHub that did something. */
const actor = {
  login: z.string().describe('Login of the account at that time'),
  is_person: z.boolean().describe('False: a bot, or an App, also one that acts for a person'),
};

const HumanInteractions = z
  .object({
    opened: z.int().describe('Opened the pull request'),
    code_push: z.int().describe('Pushed commits to it, also with the button "Update branch"'),
    review_approved: z.int().describe('Approved it'),
    review_changes_requested: z.int().describe('Asked for changes'),
    review_commented: z.int().describe('Reviewed it without a decision'),
    comment: z.int().describe('Commented on it'),
    review_comment: z.int().describe('Commented on a line'),
    pr_action: z.int().describe('Did something else, such as a label, an assignment, a merge'),
    total: z.int().describe('The sum'),
  })
  .meta({
    id: 'HumanInteractions',
    description: 'Number of actions of people on a pull request, by kind. Actions of programs do not count',
  });

const GithubActor = z.object(actor).meta({ id: 'GithubActor', description: 'An account on GitHub that did something' });

const ReviewDecision = z
  .enum(['approved', 'changes_requested'])
  .meta({ id: 'ReviewDecision', description: 'Decision about a pull request' });

const PullRequestReview = z
  .object({
    ...actor,
    decision: ReviewDecision,
    decided_at: Timestamp,
  })
  .meta({ id: 'PullRequestReview', description: 'The newest decision of a reviewer' });

const PullRequestCheck = z
  .object({
    app: z.string().describe('Name of the App that ran the checks'),
    conclusion: z.string().describe('Result in the words of GitHub, such as `success`, `failure`, `timed_out`'),
    completed_at: Timestamp,
  })
  .meta({ id: 'PullRequestCheck', description: 'A completed check suite of the commit at the head of a pull request' });

const PullRequestActivity = z
  .object({
    author_login: z.string().describe('Login of the account that opened it'),
    opened_at: Timestamp,
    first_human_review_at: Timestamp.optional().describe('First review by a person, with any decision'),
    merged_at: Timestamp.optional(),
    merged_by: GithubActor.optional().describe('Who merged it'),
    closed_at: Timestamp.optional(),
    updated_at: Timestamp.describe('Time of the newest event that changed it'),
    additions: z.int().optional().describe('Added lines'),
    deletions: z.int().optional().describe('Deleted lines'),
    changed_files: z.int().optional().describe('Number of changed files'),
    num_commits: z.int().optional().describe('Number of commits'),
    reviews: z.array(PullRequestReview).describe('The newest decision of each reviewer, newest first, at most 20'),
    checks: z
      .array(PullRequestCheck)
      .describe('Completed check suites of the commit at its head, newest first, at most 20'),
    human_interactions: HumanInteractions,
    human_code_change: z.boolean().describe('True: a person opened it, or pushed commits to it'),
    history_complete: z
      .boolean()
      .describe('True: the App has seen all events since the opening. False: earlier interactions are not counted'),
  })
  .meta({ id: 'PullRequestActivity', description: 'State and history of a pull request, from its events on GitHub' });
export type PullRequestActivity = z.infer<typeof PullRequestActivity>;

const PullRequestData = z
  .object({
    url: z.string().describe('Page of the pull request'),
    branch: z.string().describe('Branch that it asks to merge'),
    status: PullRequestState.describe(
      'State of the pull request, as the events of a GitHub App of the team show it. `unknown`: no App has seen an event of it',
    ),
    activity: PullRequestActivity.optional().describe('Absent in lists, and if no App has seen an event of it'),
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
