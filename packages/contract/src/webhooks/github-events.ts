/**
 * The names of GitHub events in the API, and the filters that each event accepts. This file imports nothing, because the service uses it
 * for every delivery.
 */

/** Members of a filter. Values of `pr_numbers` are whole numbers, all others text. */
export type GithubFilterKey =
  | 'repos'
  | 'branches'
  | 'base_branches'
  | 'paths'
  | 'labels'
  | 'authors'
  | 'assignees'
  | 'mentioned'
  | 'writers'
  | 'associations'
  | 'reviewers'
  | 'reviewer_teams'
  | 'review_states'
  | 'workflows'
  | 'conclusions'
  | 'pr_numbers';

const issue = ['repos', 'labels', 'assignees', 'authors', 'associations'] as const;
const pullRequest = [
  'repos',
  'base_branches',
  'pr_numbers',
  'paths',
  'assignees',
  'authors',
  'labels',
  'associations',
] as const;
const mention = ['repos', 'mentioned', 'writers', 'associations', 'labels'] as const;
const assignment = ['repos', 'assignees', 'labels'] as const;

/** The events, each with the members that a filter for this event may have. */
export const githubEvents = {
  push: ['repos', 'branches', 'paths'],
  issue_created: issue,
  issue_labeled: issue,
  issue_assigned: assignment,
  issue_mentioned: mention,
  pull_request_opened: pullRequest,
  pull_request_ready: pullRequest,
  pull_request_closed: pullRequest,
  pull_request_merged: pullRequest,
  pull_request_labeled: pullRequest,
  pull_request_synchronized: pullRequest,
  pull_request_reopened: pullRequest,
  pull_request_assigned: assignment,
  pull_request_mentioned: mention,
  pull_request_review_requested: ['repos', 'reviewers', 'reviewer_teams'],
  pull_request_review_submitted: ['repos', 'mentioned', 'writers', 'associations', 'labels', 'review_states'],
  check_suite_completed: ['repos', 'conclusions', 'branches', 'labels', 'authors'],
  workflow_run_completed: ['repos', 'conclusions', 'branches', 'workflows', 'labels', 'authors'],
  check_run_rerequested: ['repos'],
  check_suite_rerequested: ['repos'],
} as const satisfies Readonly<Record<string, readonly GithubFilterKey[]>>;

export type GithubEvent = keyof typeof githubEvents;

/**
 * Returns true if GitHub's payload of the event lacks the data for this member of a filter, so that such a filter never matches. These
 * are the changed files of a pull request, and, for a check, the labels and the author of the pull request.
 */
export function isNotInPayload(event: GithubEvent, key: GithubFilterKey): boolean {
  if (key === 'paths') return event !== 'push';
  const isCheck = event === 'check_suite_completed' || event === 'workflow_run_completed';
  return isCheck && (key === 'labels' || key === 'authors');
}

/** Lists of values for one member. The event must have a value that is in `in`, and no value that is in `not_in`. */
export interface Matcher {
  readonly in?: readonly (string | number)[] | undefined;
  readonly not_in?: readonly (string | number)[] | undefined;
}

/** The events whose triggers may be limited to pull requests of runs. */
export const ownPullRequestEvents: readonly GithubEvent[] = [
  'pull_request_review_submitted',
  'check_suite_completed',
  'workflow_run_completed',
];

/** Accepts only events of pull requests whose branch a run of the team has pushed, and starts only so many runs for each of them. */
export interface OwnPullRequest {
  readonly max_starts: number;
}

/** A stored filter. All members must match; an absent member matches every value. */
export type GithubFilter = { readonly [K in GithubFilterKey]?: Matcher | undefined } & {
  readonly own_pull_request?: OwnPullRequest | undefined;
};
