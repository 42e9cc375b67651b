/** The pull requests of GitHub's API, with all members that GitHub's description requires. */
import {
  accountOf,
  type FakeIssue,
  type FakeRepository,
  issueInPayload,
  repositoryInPayload,
  type Urls,
} from './objects.ts';

const at = '2026-01-02T03:04:05Z';

/** Names of the members with addresses below a repository. */
const addresses = [
  ...[
    'archive',
    'assignees',
    'blobs',
    'branches',
    'collaborators',
    'comments',
    'commits',
    'compare',
    'contents',
    'contributors',
  ],
  ...[
    'deployments',
    'downloads',
    'events',
    'forks',
    'git_commits',
    'git_refs',
    'git_tags',
    'hooks',
    'issue_comment',
    'issue_events',
  ],
  ...[
    'issues',
    'keys',
    'labels',
    'languages',
    'merges',
    'milestones',
    'notifications',
    'pulls',
    'releases',
    'stargazers',
  ],
  ...['statuses', 'subscribers', 'subscription', 'tags', 'teams', 'trees', 'clone', 'git', 'ssh', 'svn'],
];

const repositoryOf = (repository: FakeRepository, urls: Urls) => {
  const { full_name, ...members } = repositoryInPayload(repository, urls);
  const url = `${urls.api}/repos/${full_name}`;
  const counts = [
    'forks',
    'forks_count',
    'open_issues',
    'open_issues_count',
    'size',
    'stargazers_count',
    'watchers',
    'watchers_count',
  ];
  const flags = [
    'archived',
    'disabled',
    'fork',
    'has_downloads',
    'has_issues',
    'has_pages',
    'has_projects',
    'has_wiki',
  ];
  return {
    ...members,
    full_name,
    url,
    ...Object.fromEntries(addresses.map((name) => [`${name}_url`, `${url}/${name}`])),
    ...Object.fromEntries(counts.map((name) => [name, 0])),
    ...Object.fromEntries(flags.map((name) => [name, false])),
    ...{ description: null, homepage: null, language: null, license: null, mirror_url: null },
    ...{ created_at: at, updated_at: at, pushed_at: at },
  };
};

/** Returns a pull request, as the API and the payloads of events have it. */
export function pullOf(issue: FakeIssue, urls: Urls) {
  const { number, repository, headRepository = repository, headBranch = 'change' } = issue;
  const base = repositoryOf(repository, urls);
  const url = `${base.url}/pulls/${number}`;
  const head = headRepository === null ? null : repositoryOf(headRepository, urls);
  const refOf = (of: typeof head, ref: string, sha: string) => {
    const user = accountOf((of === null ? issue : { user: headRepository?.owner ?? issue.user }).user, urls);
    return { label: `${user.login}:${ref}`, ref, sha, repo: of, user };
  };
  const links = ['self', 'html', 'issue', 'comments', 'review_comments', 'review_comment', 'commits', 'statuses'];
  const { pull_request: _, ...members } = issueInPayload(issue, urls);
  return {
    ...members,
    url,
    node_id: `PR_${number}`,
    ...Object.fromEntries(
      ['diff', 'patch', 'commits', 'review_comments', 'review_comment', 'comments', 'statuses', 'issue'].map((name) => [
        `${name}_url`,
        `${url}/${name}`,
      ]),
    ),
    _links: Object.fromEntries(links.map((name) => [name, { href: `${url}/${name}` }])),
    head: refOf(head, headBranch, issue.head ?? ''),
    base: { label: `${repository.owner.login}:main`, ref: 'main', sha: '0'.repeat(40), repo: base, user: base.owner },
    ...{
      created_at: at,
      updated_at: at,
      closed_at: null,
      merged_at: issue.mergedAt ?? null,
      merge_commit_sha: null,
      merged_by: null,
    },
    ...{ assignee: null, milestone: null, auto_merge: null, locked: false, mergeable: true, mergeable_state: 'clean' },
    ...{ merged: issue.mergedAt !== undefined, maintainer_can_modify: false },
    ...{
      additions: 1,
      changed_files: 1,
      comments: issue.comments.length,
      commits: 1,
      deletions: 0,
      review_comments: issue.reviewComments.length,
    },
  };
}

/** A check that has ended. */
export interface FakeCheck {
  readonly sha: string;
  readonly name: string;
  readonly conclusion: string;
  readonly summary: string;
}

export const checkRunOf = ({ sha, name, conclusion, summary }: FakeCheck, urls: Urls) => ({
  id: 1,
  node_id: 'CR_1',
  head_sha: sha,
  name,
  url: `${urls.api}/check-runs/1`,
  html_url: `${urls.web}/checks/1`,
  details_url: `${urls.web}/checks/1`,
  status: 'completed',
  conclusion,
  started_at: at,
  completed_at: at,
  external_id: '',
  check_suite: { id: 1 },
  output: {
    title: name,
    summary,
    text: null,
    annotations_count: 0,
    annotations_url: `${urls.api}/check-runs/1/annotations`,
  },
  app: null,
  pull_requests: [],
});
