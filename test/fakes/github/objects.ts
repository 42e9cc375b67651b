/** The objects of GitHub's API, with all members that GitHub's description requires. */

const at = '2026-01-02T03:04:05Z';

export interface FakeAccount {
  readonly id: number;
  login: string;
  readonly type: 'User' | 'Organization' | 'Bot';
}

export interface FakeRepository {
  readonly id: number;
  readonly owner: FakeAccount;
  readonly name: string;
  readonly isPrivate: boolean;
}

export interface FakeComment {
  readonly id: number;
  readonly user: FakeAccount;
  body: string;
  readonly createdAt: string;
  updatedAt: string;
  readonly association: string;
  /** True: the App of the fake wrote it. */
  readonly byApp: boolean;
  /** The first comment of the review thread; absent: the comment begins a thread, or is no review comment. */
  readonly inReplyTo?: number;
  /** The review of a review comment; absent: GitHub names none. */
  readonly reviewId?: number;
  /** File and line of a comment that belongs to a review. */
  readonly path?: string;
  readonly line?: number;
}

export interface FakeReview {
  readonly id: number;
  readonly body: string;
  readonly event: string;
  readonly commitId: string;
}

export interface FakeCheckRun {
  readonly id: number;
  readonly repository: FakeRepository;
  readonly headSha: string;
  readonly name: string;
  readonly externalId: string;
  status: string;
  conclusion?: string | undefined;
  title: string;
  summary: string;
  readonly annotations: object[];
}

export interface FakeIssue {
  readonly number: number;
  readonly repository: FakeRepository;
  readonly title: string;
  readonly body: string;
  readonly user: FakeAccount;
  readonly association: string;
  /** The newest commit. Present if the issue is a pull request. */
  head?: string;
  /** The repository of the newest commit; null: it was deleted. Absent: the repository of the pull request. */
  readonly headRepository?: FakeRepository | null;
  /** Default: `change`. */
  readonly headBranch?: string;
  mergedAt?: string;
  /** Absent: open. */
  isClosed?: boolean;
  /** Earlier commits of the pull request. */
  readonly earlierHeads?: readonly string[];
  /** The lines of each file that are in the diff. */
  readonly diffLines?: Readonly<Record<string, readonly number[]>>;
  readonly reviews: FakeReview[];
  readonly labels: string[];
  readonly reviewers: string[];
  /** First comments of the threads that are resolved. */
  readonly resolved: number[];
  diff?: string;
  readonly comments: FakeComment[];
  readonly reviewComments: FakeComment[];
}

export interface FakeAppState {
  readonly id: number;
  readonly slug: string;
  readonly owner: FakeAccount;
  readonly permissions: Readonly<Record<string, string>>;
  readonly clientId: string;
}

export interface FakeInstallation {
  readonly id: number;
  readonly account: FakeAccount;
  permissions: Readonly<Record<string, string>>;
  isSuspended: boolean;
}

export interface Urls {
  /** Origin of the host. */
  readonly web: string;
  /** Base of the API. */
  readonly api: string;
}

export function accountOf({ id, login, type }: FakeAccount, { web, api }: Urls) {
  const url = `${api}/users/${encodeURIComponent(login)}`;
  return {
    login,
    id,
    node_id: `U_${id}`,
    avatar_url: `${web}/avatars/${id}`,
    gravatar_id: '',
    url,
    html_url: `${web}/${encodeURIComponent(login)}`,
    followers_url: `${url}/followers`,
    following_url: `${url}/following{/other_user}`,
    gists_url: `${url}/gists{/gist_id}`,
    starred_url: `${url}/starred{/owner}{/repo}`,
    subscriptions_url: `${url}/subscriptions`,
    organizations_url: `${url}/orgs`,
    repos_url: `${url}/repos`,
    events_url: `${url}/events{/privacy}`,
    received_events_url: `${url}/received_events`,
    type,
    site_admin: false,
  };
}

/** The answer of `GET /user` without private members. */
export const publicUserOf = (account: FakeAccount, urls: Urls) => ({
  ...accountOf(account, urls),
  user_view_type: 'public',
  name: null,
  company: null,
  blog: null,
  location: null,
  email: null,
  hireable: null,
  bio: null,
  public_repos: 0,
  public_gists: 0,
  followers: 0,
  following: 0,
  created_at: at,
  updated_at: at,
});

export const appOf = ({ id, slug, owner, permissions, clientId }: FakeAppState, urls: Urls) => ({
  id,
  slug,
  node_id: `A_${id}`,
  client_id: clientId,
  owner: accountOf(owner, urls),
  name: slug,
  description: null,
  external_url: urls.web,
  html_url: `${urls.web}/apps/${slug}`,
  created_at: at,
  updated_at: at,
  permissions,
  events: ['issue_comment'],
});

export const installationOf = (
  { id, account, permissions, isSuspended }: FakeInstallation,
  app: FakeAppState,
  urls: Urls,
) => ({
  id,
  account: accountOf(account, urls),
  repository_selection: 'all',
  access_tokens_url: `${urls.api}/app/installations/${id}/access_tokens`,
  repositories_url: `${urls.api}/installation/repositories`,
  html_url: `${urls.web}/settings/installations/${id}`,
  app_id: app.id,
  app_slug: app.slug,
  target_id: account.id,
  target_type: account.type,
  permissions,
  events: ['issue_comment'],
  created_at: at,
  updated_at: at,
  single_file_name: null,
  suspended_by: null,
  suspended_at: isSuspended ? at : null,
});

const nameOf = ({ owner, name }: FakeRepository): string => `${owner.login}/${name}`;

export function commentOf(comment: FakeComment, issue: FakeIssue, app: FakeAppState, urls: Urls) {
  const repository = `${urls.api}/repos/${nameOf(issue.repository)}`;
  return {
    id: comment.id,
    node_id: `IC_${comment.id}`,
    url: `${repository}/issues/comments/${comment.id}`,
    html_url: `${urls.web}/${nameOf(issue.repository)}/issues/${issue.number}#issuecomment-${comment.id}`,
    issue_url: `${repository}/issues/${issue.number}`,
    user: accountOf(comment.user, urls),
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    author_association: comment.association,
    body: comment.body,
    performed_via_github_app: comment.byApp ? appOf(app, urls) : null,
  };
}

export function reviewCommentOf(comment: FakeComment, issue: FakeIssue, urls: Urls) {
  const repository = `${urls.api}/repos/${nameOf(issue.repository)}`;
  const pull = `${repository}/pulls/${issue.number}`;
  const url = `${repository}/pulls/comments/${comment.id}`;
  const html = `${urls.web}/${nameOf(issue.repository)}/pull/${issue.number}#discussion_r${comment.id}`;
  const sha = issue.head ?? '0'.repeat(40);
  return {
    id: comment.id,
    node_id: `PRRC_${comment.id}`,
    url,
    pull_request_review_id: comment.reviewId ?? null,
    diff_hunk: '@@ -1 +1 @@',
    path: 'README.md',
    commit_id: sha,
    original_commit_id: sha,
    user: accountOf(comment.user, urls),
    body: comment.body,
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    html_url: html,
    pull_request_url: pull,
    author_association: comment.association,
    _links: { self: { href: url }, html: { href: html }, pull_request: { href: pull } },
    ...(comment.inReplyTo === undefined ? {} : { in_reply_to_id: comment.inReplyTo }),
  };
}

/** The members of a payload that describe the repository and the issue, as far as services read them. */
export const repositoryInPayload = (repository: FakeRepository, urls: Urls) => ({
  id: repository.id,
  node_id: `R_${repository.id}`,
  name: repository.name,
  full_name: nameOf(repository),
  private: repository.isPrivate,
  owner: accountOf(repository.owner, urls),
  html_url: `${urls.web}/${nameOf(repository)}`,
  default_branch: 'main',
});

export const issueInPayload = (issue: FakeIssue, urls: Urls) => ({
  id: issue.repository.id * 1_000 + issue.number,
  number: issue.number,
  title: issue.title,
  body: issue.body,
  state: issue.isClosed ? 'closed' : 'open',
  user: accountOf(issue.user, urls),
  author_association: issue.association,
  labels: [],
  assignees: [],
  html_url: `${urls.web}/${nameOf(issue.repository)}/${issue.head ? 'pull' : 'issues'}/${issue.number}`,
  ...(issue.head
    ? {
        pull_request: Object.fromEntries(
          ['url', 'html_url', 'diff_url', 'patch_url'].map((name) => [
            name,
            `${urls.api}/repos/${nameOf(issue.repository)}/pulls/${issue.number}`,
          ]),
        ),
      }
    : {}),
});
