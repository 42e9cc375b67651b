import { z } from 'zod';
import { NonBlank, Text } from '../wire/primitives.ts';

/** Reads like the path of a file in a diff. */
const File = NonBlank.max(1_000);
const Line = z.int().min(1).max(1_000_000);
const Side = z.enum(['LEFT', 'RIGHT']).meta({ id: 'GithubSide', description: 'A version of a file in a diff' });

const target = {
  pull_request: Text.max(500)
    .optional()
    .describe(
      'Page of a pull request that this run has opened. Absent: the issue or pull request that started the run',
    ),
};

const LineComment = z
  .object({
    path: File.describe('File in the diff'),
    line: Line.describe('Line of the file, in the diff; the last one of several'),
    start_line: Line.optional().describe('First line, if the comment is about several'),
    side: Side.optional().describe('`RIGHT`: the new version of the file, also if absent; `LEFT`: the old one'),
    body: Text.max(20_000).describe('Comment in Markdown'),
    suggestion: Text.max(20_000)
      .optional()
      .describe('Text that replaces the lines. People who may push can accept it with one click'),
  })
  .meta({ id: 'GithubLineComment', description: 'A comment about lines of a diff' });

const Comment = z
  .object({ ...target, body: NonBlank.max(60_000).describe('Text in Markdown') })
  .meta({ id: 'GithubComment', description: 'A comment; in a review thread a reply' });

const Review = z
  .object({
    ...target,
    event: z
      .enum(['COMMENT', 'REQUEST_CHANGES'])
      .meta({ id: 'GithubReviewEvent', description: 'Opinion of a review' })
      .default('COMMENT')
      .describe('Opinion of the review. A run cannot approve'),
    body: Text.max(60_000).optional().describe('Summary in Markdown'),
    commit_id: z
      .string()
      .regex(/^[0-9a-f]{40}$/, { error: 'must be the whole SHA of a commit' })
      .optional()
      .describe('The commit that was reviewed. Absent: the newest one of the pull request'),
    comments: z.array(LineComment).max(50).optional().describe('Comments about lines, at most 50'),
  })
  .refine(({ body, comments = [] }) => body?.trim() || comments.length > 0, {
    error: 'a review needs a body or comments',
  })
  .meta({ id: 'GithubReview', description: 'A review together with its comments about lines' });

const Labels = z
  .object({
    ...target,
    labels: z.array(NonBlank.max(50)).min(1).max(10).describe('Names of labels, at most 10'),
  })
  .meta({ id: 'GithubLabels', description: 'Labels to add' });

const Login = z.string().regex(/^[A-Za-z0-9_-]{1,60}$/, { error: 'must be a name without @' });
const Reviewers = z
  .object({
    ...target,
    reviewers: z.array(Login).max(10).default([]).describe('Logins of people, at most 10'),
    team_reviewers: z.array(Login).max(5).default([]).describe('Short names of teams, at most 5'),
  })
  .refine(({ reviewers, team_reviewers }) => reviewers.length + team_reviewers.length > 0, {
    error: 'name somebody in reviewers or team_reviewers',
  })
  .meta({ id: 'GithubReviewers', description: 'People and teams who are asked for a review' });

const Thread = z
  .object({
    ...target,
    thread: z
      .int()
      .min(1)
      .optional()
      .describe('Id of the first comment of the review thread. Absent: the thread that started the run'),
  })
  .meta({ id: 'GithubThread', description: 'A review thread to resolve' });

/** The tools with which a run answers on GitHub: what each does for the agent, and its input. */
export const githubTools = {
  comment: {
    does: 'Writes a comment in the issue, pull request or review thread that started this run.',
    input: Comment,
  },
  review: {
    does: 'Writes a review of the pull request, with comments and suggestions for lines of its diff.',
    input: Review,
  },
  add_labels: { does: 'Adds labels to the issue or pull request.', input: Labels },
  request_reviewers: { does: 'Asks people or teams to review the pull request.', input: Reviewers },
  resolve_thread: { does: 'Marks a review thread of the pull request as resolved.', input: Thread },
} as const;

export type GithubToolName = keyof typeof githubTools;

const requestOf = <T extends string, I extends z.ZodType>(tool: T, input: I, id: string) =>
  z
    .object({ tool: z.literal(tool).describe('Name of the tool'), input: input.describe('Its input') })
    .meta({ id, description: `Use of the tool ${tool}` });

/** `POST /harness-support/github-answers`: something to write on GitHub. */
export const GithubAnswerRequest = z
  .discriminatedUnion('tool', [
    requestOf('comment', Comment, 'UseGithubComment'),
    requestOf('review', Review, 'UseGithubReview'),
    requestOf('add_labels', Labels, 'UseGithubLabels'),
    requestOf('request_reviewers', Reviewers, 'UseGithubReviewers'),
    requestOf('resolve_thread', Thread, 'UseGithubThread'),
  ])
  .meta({
    id: 'GithubAnswerRequest',
    description: 'A tool that the automation or the environment allows, with its input',
  });
export type GithubAnswerRequest = z.infer<typeof GithubAnswerRequest>;

export const GithubAnswerResponse = z
  .object({
    url: z.string().describe('Page of what was written'),
    is_new: z.boolean().describe('False: the run had done the same before, and nothing was written again'),
  })
  .meta({ id: 'GithubAnswerResponse', description: 'Something that the run wrote on GitHub' });
export type GithubAnswerResponse = z.infer<typeof GithubAnswerResponse>;

const most = (does: string) => z.int().min(1).max(50).optional().describe(does);

/** The tools that an environment or an automation allows to its runs. */
export const GithubTools = z
  .strictObject({
    comment: most('Comments'),
    review: most('Reviews, each with its comments about lines'),
    add_labels: most('Additions of labels'),
    request_reviewers: most('Requests for reviews'),
    resolve_thread: most('Review threads that it resolves'),
  })
  .meta({
    id: 'GithubTools',
    description:
      'How often a run may use each tool that writes on GitHub, at most 50. Absent: never. A run writes only to the issue or pull request whose event started it, and to pull requests that it opened',
  });
export type GithubTools = z.infer<typeof GithubTools>;
