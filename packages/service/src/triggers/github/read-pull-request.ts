/** Reads the facts about a pull request from an event of GitHub. */
import type { PullRequestChangeType } from '@runyard/contract/runs/artifacts';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { z } from 'zod';
import { canonicalUrl } from '../../runs/files/artifacts/external-reference.ts';
import type { PullRequestEvent, SeenPullRequest } from '../../runs/files/artifacts/pull-requests.ts';
import { type AppEvent, storable } from './read-event.ts';

const time = z.iso.datetime({ offset: true });
const sha = z.string().regex(/^[\da-f]{40,64}$/);
const size = z.int().min(0).max(2_000_000_000).nullish();

/** The parts of GitHub's pull request that are recorded. */
const PullRequest = z.object({
  html_url: z.string().max(2_048),
  state: z.enum(['open', 'closed']),
  draft: z.boolean().nullish(),
  user: z.object({ login: z.string().max(100) }),
  created_at: time,
  updated_at: time,
  closed_at: time.nullish(),
  merged_at: time.nullish(),
  additions: size,
  deletions: size,
  changed_files: size,
  commits: size,
  head: z.object({ sha }).nullish(),
  merged_by: z.object({ login: z.string().max(100), type: z.string().max(100).optional() }).nullish(),
});

/** The parts of GitHub's check suite that are recorded. Its pull requests are those of branches of the same repository. */
const Checks = z.object({
  repository: z.object({ id: z.int(), html_url: z.string().max(2_048) }),
  check_suite: z.object({
    id: z.int(),
    head_sha: sha,
    conclusion: z.string().regex(/^[a-z_]{1,50}$/),
    updated_at: time,
    app: z.object({ name: z.string().max(200) }),
    pull_requests: z
      .array(
        z.object({
          number: z.int(),
          head: z.object({ sha, ref: z.string().max(500), repo: z.object({ id: z.int() }) }),
        }),
      )
      .max(1_000),
  }),
});

const Payload = z.object({
  pull_request: PullRequest.optional(),
  issue: z.object({ html_url: z.string().max(2_048), pull_request: z.object({}).nullish() }).optional(),
  review: z.object({ id: z.int().min(1).optional(), state: z.string() }).optional(),
});

const reviews: Readonly<Record<string, PullRequestChangeType>> = {
  approved: 'review_approved',
  changes_requested: 'review_changes_requested',
  commented: 'review_commented',
};

/** Returns what the event did; null: nothing that is recorded, such as an edit of a comment. */
function kindOf({ name, action }: AppEvent, review: string): PullRequestChangeType | null {
  switch (name) {
    case 'pull_request':
      return action === 'opened' ? 'opened' : action === 'synchronize' ? 'code_push' : 'pr_action';
    case 'pull_request_review':
      if (action === 'dismissed') return 'pr_action';
      return action === 'submitted' && Object.hasOwn(reviews, review) ? (reviews[review] ?? null) : null;
    case 'pull_request_review_comment':
      return action === 'created' ? 'review_comment' : null;
    case 'issue_comment':
      return action === 'created' ? 'comment' : null;
    default:
      return null;
  }
}

function seenOf(pull: z.infer<typeof PullRequest>): SeenPullRequest {
  const isMerged = pull.merged_at != null;
  return {
    state: isMerged ? 'merged' : pull.state === 'closed' ? 'closed' : pull.draft ? 'draft' : 'open',
    author: pull.user.login,
    openedAt: pull.created_at,
    mergedAt: pull.merged_at ?? null,
    closedAt: pull.closed_at ?? null,
    changedAt: pull.updated_at,
    headSha: pull.head?.sha ?? null,
    mergedBy:
      isMerged && pull.merged_by
        ? { login: storable(pull.merged_by.login), isPerson: pull.merged_by.type === 'User' }
        : null,
    sizes: {
      additions: pull.additions ?? null,
      deletions: pull.deletions ?? null,
      changedFiles: pull.changed_files ?? null,
      commits: pull.commits ?? null,
    },
  };
}

/** Largest number of pull requests of one check suite. */
const maxPulls = 5;

/** Returns the pull requests whose head has a check suite that ended. For forks, GitHub names no pull requests, so there are none. */
function readChecks(event: AppEvent, guid: string, payload: unknown): PullRequestEvent[] {
  const read = event.name === 'check_suite' && event.action === 'completed' ? parseUntrusted(Checks, payload) : null;
  if (!read?.success) return [];
  const { repository, check_suite: suite } = read.data;
  const { id, head_sha, conclusion, updated_at: completed_at } = suite;
  const pulls = suite.pull_requests.filter(({ head }) => head.sha === head_sha && head.repo.id === repository.id);
  return pulls.slice(0, maxPulls).flatMap(({ number }): PullRequestEvent[] => {
    const url = canonicalUrl(`${repository.html_url}/pull/${number}`);
    const checkSuite = { id, app: storable(suite.app.name), head_sha, conclusion, completed_at };
    const of = {
      kind: 'checks_completed',
      isPerson: false,
      login: event.sender.login,
      seen: null,
      checkSuite,
    } as const;
    return url === null ? [] : [{ url, guid: `${guid} ${number}`, ...of }];
  });
}

const Head = z.object({ sha, ref: z.string().max(500), repo: z.object({ id: z.int() }).nullable() });
const repositoryOf = z.object({ id: z.int(), full_name: z.string().max(200), html_url: z.string().max(2_048) });
const Reviewed = z.object({
  repository: repositoryOf,
  pull_request: z.object({ number: z.int(), head: Head }),
});
const Checked = z.object({
  head_sha: sha,
  pull_requests: z.array(z.object({ number: z.int(), head: Head })).max(1_000),
});
const CheckedPulls = z.object({
  repository: repositoryOf,
  check_suite: Checked.optional(),
  workflow_run: Checked.optional(),
});

/** A pull request that an event is about, with a branch of the same repository. */
export interface PullRequestOfEvent {
  readonly url: string;
  readonly number: number;
  /** `owner/repo` in lower case. */
  readonly repository: string;
  readonly branch: string;
  /** Of checks: the commit that they checked. */
  readonly head?: string;
}

/** Returns the pull requests that a review, or checks of their head, are about. Never returns a pull request of a fork. */
export function readSubjects({ name, action }: AppEvent, payload: unknown): PullRequestOfEvent[] {
  const isReview = name === 'pull_request_review' && action === 'submitted';
  if (!isReview && action !== 'completed') return [];
  const review = isReview ? parseUntrusted(Reviewed, payload).data : undefined;
  const checks = isReview ? undefined : parseUntrusted(CheckedPulls, payload).data;
  const checked = checks?.check_suite ?? checks?.workflow_run;
  const repository = review?.repository ?? checks?.repository;
  const pulls = review
    ? [review.pull_request]
    : (checked?.pull_requests ?? []).filter(({ head }) => head.sha === checked?.head_sha);
  if (!repository) return [];
  return pulls
    .filter(({ head }) => head.repo?.id === repository.id)
    .slice(0, maxPulls)
    .flatMap(({ number, head }): PullRequestOfEvent[] => {
      const url = canonicalUrl(`${repository.html_url}/pull/${number}`);
      const of = { number, repository: repository.full_name.toLowerCase(), branch: storable(head.ref) };
      return url === null ? [] : [{ ...of, url, ...(checked ? { head: checked.head_sha } : {}) }];
    });
}

/** Returns whether the event is about checks of the App itself. */
export const isCheckOf = (app: { readonly app_id: string }, payload: unknown): boolean => {
  const suite = Reflect.get(Object(payload), 'check_suite');
  return String(Reflect.get(Object(Reflect.get(Object(suite), 'app')), 'id')) === app.app_id;
};

/** Returns what the event says about pull requests; an empty list if it is about none. */
export function readPullRequestEvents(event: AppEvent, guid: string, payload: unknown): PullRequestEvent[] {
  const checks = readChecks(event, guid, payload);
  if (checks.length > 0) return checks;
  const read = parseUntrusted(Payload, payload);
  if (!read.success) return [];
  const { pull_request: pull, issue, review } = read.data;
  const kind = kindOf(event, review?.state ?? '');
  const address = pull?.html_url ?? (issue?.pull_request ? issue.html_url : undefined);
  const url = address === undefined ? null : canonicalUrl(address);
  if (kind === null || url === null) return [];
  const { login } = event.sender;
  const of = { guid, kind, isPerson: !event.isByApp, login, reviewId: review?.id };
  return [{ url, ...of, seen: pull ? seenOf(pull) : null }];
}
