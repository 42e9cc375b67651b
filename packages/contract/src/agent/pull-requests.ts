import { z } from 'zod';
import { Repository } from '../environments/repositories.ts';
import { NonBlank, Text } from '../wire/primitives.ts';

const BranchName = z.string().regex(/^[!-)+-9;->@-Z\]_-}\u00a1-\ud7ff\ue000-\uffff]{1,200}$/u, {
  error: 'must be the name of a branch without refs/heads/, at most 200 characters',
});

/** `POST /harness-support/pull-requests`: opens a pull request for a branch that the run has pushed. */
export const OpenPullRequest = z
  .object({
    repository: Repository.describe("One of the repositories of the run's environment"),
    head: BranchName.describe('Branch with the work; it must be at the code host'),
    base: BranchName.optional().describe('Branch to merge into; absent: the default branch'),
    title: NonBlank.max(256).describe('Title, at most 256 characters'),
    body: Text.max(60_000).optional().describe('Description in Markdown, at most 60,000 characters'),
    draft: z.boolean().optional().describe('True: it is not ready to be reviewed'),
  })
  .meta({ id: 'OpenPullRequest', description: 'A pull request to open, at GitLab a merge request' });
export type OpenPullRequest = z.infer<typeof OpenPullRequest>;

export const OpenPullRequestResponse = z
  .object({
    artifact_uid: z.string().describe('UID of the artifact of type PULL_REQUEST'),
    url: z.string().describe('Page of the pull request'),
    branch: z.string().describe('Branch that it asks to merge'),
    is_new: z.boolean().describe('False: the branch had an open pull request already, and it was not changed'),
  })
  .meta({ id: 'OpenPullRequestResponse', description: 'An open pull request' });
export type OpenPullRequestResponse = z.infer<typeof OpenPullRequestResponse>;
