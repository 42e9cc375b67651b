/** The requests with which Apps review, label, ask for reviews and resolve threads. The fake refuses stale commits and lines outside the diff. */
import { sampleOf } from './check-openapi.ts';
import type { FakeGithubState } from './github.ts';
import { accountOf, type FakeIssue, type FakeReview, type Urls } from './objects.ts';
import { byApp, type FakeAnswer, type Handler, inRepository, issueOf, listed, notFound, refuse } from './routes.ts';

const pageOf = (issue: FakeIssue, urls: Urls): string =>
  `${urls.web}/${issue.repository.owner.login}/${issue.repository.name}/pull/${issue.number}`;

const reviewOf = (review: FakeReview, issue: FakeIssue, { bot, urls }: FakeGithubState) =>
  sampleOf('pull-request-review', {
    id: review.id,
    user: accountOf(bot, urls),
    body: review.body,
    state: review.event === 'COMMENT' ? 'COMMENTED' : 'CHANGES_REQUESTED',
    commit_id: review.commitId,
    html_url: `${pageOf(issue, urls)}#pullrequestreview-${review.id}`,
    author_association: 'NONE',
  });

const invalid = (...errors: string[]): FakeAnswer => ({
  status: 422,
  body: { message: 'Unprocessable Entity', errors, documentation_url: '' },
});

interface SentComment {
  readonly path: string;
  readonly line?: number;
  readonly start_line?: number;
  readonly body: string;
}

const review: Handler = inRepository('pull_requests', 'write', (state, { parts, body }, repository) => {
  const issue = issueOf(state, repository, parts[2]);
  if (!issue?.head) return notFound;
  const commitId = String(body.commit_id ?? issue.head);
  if (![issue.head, ...(issue.earlierHeads ?? [])].includes(commitId))
    return invalid('No commit found for SHA: the commit is not part of the pull request');
  if (!body.body && body.event !== undefined) return invalid('Body is required');
  const comments = (body.comments ?? []) as SentComment[];
  const isInDiff = ({ path, line = 0, start_line: first = line }: SentComment) =>
    [first, line].every((each) => issue.diffLines?.[path]?.includes(each)) && first <= line;
  // A line of an older commit may be gone, so GitHub cannot find it.
  if (!comments.every(isInDiff) || (comments.length > 0 && commitId !== issue.head))
    return invalid('Line could not be resolved');
  for (const each of comments)
    issue.reviewComments.push({ ...byApp(state, each.body), path: each.path, line: each.line ?? 0 });
  const made = { id: state.newId(), body: String(body.body), event: String(body.event), commitId };
  issue.reviews.push(made);
  return { status: 200, body: reviewOf(made, issue, state) };
});

const reviews: Handler = inRepository('pull_requests', 'read', (state, request, repository) => {
  const issue = issueOf(state, repository, request.parts[2]);
  if (!issue?.head) return notFound;
  return listed(issue.reviews, request, (each) => reviewOf(each, issue, state));
});

const labels: Handler = inRepository('issues', 'write', (state, { parts, body }, repository) => {
  const issue = issueOf(state, repository, parts[2]);
  if (!issue) return notFound;
  for (const name of body.labels as string[]) if (!issue.labels.includes(name)) issue.labels.push(name);
  return { status: 200, body: issue.labels.map((name) => sampleOf('label', { name })) };
});

const reviewers: Handler = inRepository('pull_requests', 'write', (state, { parts, body }, repository) => {
  const issue = issueOf(state, repository, parts[2]);
  if (!issue?.head) return notFound;
  const people = (body.reviewers ?? []) as string[];
  if (people.some((login) => !state.accounts.some((each) => each.login === login)))
    return refuse(422, 'Reviews may only be requested from collaborators.');
  issue.reviewers.push(...people);
  return { status: 201, body: sampleOf('pull-request-simple', { html_url: pageOf(issue, state.urls) }) };
});

/** GraphQL, as far as Apps use it for review threads. GitHub's OpenAPI does not describe it. */
const graphql: Handler = (state, { caller, body }) => {
  const fails = (message: string): FakeAnswer => ({ status: 200, body: { data: null, errors: [{ message }] } });
  if (caller.kind !== 'installation') return refuse(401, 'Bad credentials');
  const { owner, name, number, id } = body.variables as Record<string, unknown>;
  const mayWrite = ['pull_requests', 'contents'].every((each) => caller.permissions[each] === 'write');
  if (!mayWrite) return fails('Resource not accessible by integration');
  const visible = state.issues.filter(
    ({ repository }) =>
      caller.installation.account.id === repository.owner.id && caller.repositories?.includes(repository.id),
  );
  if (id !== undefined) {
    const first = Number(String(id).replace('PRRT_', ''));
    const issue = visible.find((each) => each.reviewComments.some((comment) => comment.id === first));
    if (!issue) return fails('Could not resolve to a node');
    issue.resolved.push(first);
    return { status: 200, body: { data: { resolveReviewThread: { thread: { isResolved: true } } } } };
  }
  const issue = visible.find(
    (each) => each.number === number && each.repository.name === name && each.repository.owner.login === owner,
  );
  if (!issue) return fails('Could not resolve to a PullRequest');
  const nodes = issue.reviewComments
    .filter(({ inReplyTo }) => inReplyTo === undefined)
    .map((comment) => ({ id: `PRRT_${comment.id}`, comments: { nodes: [{ databaseId: comment.id }] } }));
  const reviewThreads = { nodes, pageInfo: { hasNextPage: false, endCursor: null } };
  return { status: 200, body: { data: { repository: { pullRequest: { reviewThreads } } } } };
};

export const answerHandlers: readonly (readonly [method: string, path: RegExp, work: Handler])[] = [
  ['POST', /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/reviews$/, review],
  ['GET', /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/reviews$/, reviews],
  ['POST', /^\/repos\/([\w.-]+)\/([\w.-]+)\/issues\/(\d+)\/labels$/, labels],
  ['POST', /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/requested_reviewers$/, reviewers],
  ['POST', /^\/api\/graphql$/, graphql],
];
