/** The requests with which the tools of a run write on GitHub. All texts go through the filter of `sanitize.ts`. */
import type { GithubAnswerRequest, GithubToolName } from '@runyard/contract/environments/github-tools';
import type { GithubRequest, TokenScope } from '../../../team/code-hosts/github-api.ts';
import type { PlaceRow } from '../../../triggers/github/places.ts';
import { scopeOf } from '../../../triggers/github/send-words.ts';
import { sanitize } from './sanitize.ts';
import { createPath, listPath } from './write-comment.ts';

type InputOf<T extends GithubToolName> = Extract<GithubAnswerRequest, { tool: T }>['input'];

export interface AnswerTool<I> {
  readonly needsPullRequest: boolean;
  readonly permissions: (place: PlaceRow) => TokenScope['permissions'];
  /** The list in which a text whose answer was lost is found by its marker. Absent: writing twice changes nothing. */
  readonly list?: (place: PlaceRow) => string;
  /** Throws if a text cannot be made clean. */
  readonly request: (place: PlaceRow, input: I, marker: string) => GithubRequest;
  /** Returns the request after an answer of GraphQL, or a sentence for the agent; null: it is done. */
  readonly next?: (answer: unknown, place: PlaceRow, input: I) => GithubRequest | string | null;
}

const pullRequests = () => ({ pull_requests: 'write' }) as const;
const pull = ({ repository, number }: PlaceRow): string => `/repos/${repository}/pulls/${number}`;

/** Returns a block of code whose end is not in the text. */
function suggestionOf(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([marks]) => marks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}suggestion\n${text}\n${fence}`;
}

type LineComment = NonNullable<InputOf<'review'>['comments']>[number];

const lineComment = ({ path, line, start_line, side = 'RIGHT', body, suggestion }: LineComment) => ({
  path,
  line,
  side,
  ...(start_line === undefined ? {} : { start_line, start_side: side }),
  // Each part is cleaned by itself, so that an open block in the body does not contain the suggestion.
  body: [body, ...(suggestion === undefined ? [] : [suggestionOf(suggestion)])].map(sanitize).join('\n\n'),
});

const withMarker = (text: string | undefined, marker: string): string =>
  text === undefined ? marker : `${sanitize(text)}\n\n${marker}`;

/** Returns the label, or throws if it is not clean: GitHub shows labels unchanged, so the filter cannot clean them. */
function cleanLabel(label: string): string {
  if (/[\n,]/.test(label) || sanitize(label) !== label) throw new Error('a label for GitHub is not clean');
  return label;
}

const threads = `query($owner:String!,$name:String!,$number:Int!,$after:String){repository(owner:$owner,name:$name){pullRequest(number:$number){
  reviewThreads(first:100,after:$after){nodes{id comments(first:1){nodes{databaseId}}}pageInfo{hasNextPage endCursor}}}}}`;
const resolve = 'mutation($id:ID!){resolveReviewThread(input:{threadId:$id}){thread{isResolved}}}';
const graphql = (query: string, variables: object): GithubRequest => ({
  method: 'POST',
  path: '/graphql',
  body: { query, variables },
});

/** Asks for the review threads of the pull request. Only GraphQL has them. */
function findThreads({ repository, number }: PlaceRow, after: string | null): GithubRequest {
  const [owner, name] = repository.split('/');
  return graphql(threads, { owner, name, number, after });
}

function afterThreads(answer: unknown, place: PlaceRow, { thread }: InputOf<'resolve_thread'>) {
  const { repository, resolveReviewThread: resolved } = Object(Object(answer).data);
  if (resolved) return null;
  const { nodes, pageInfo } = Object(Object(Object(repository).pullRequest).reviewThreads);
  const wanted = thread ?? place.thread_id;
  const found = (Array.isArray(nodes) ? nodes : []).find(
    (each) => Object(Object(Object(each).comments).nodes?.[0]).databaseId === wanted,
  );
  if (found) return graphql(resolve, { id: found.id });
  const { hasNextPage, endCursor } = Object(pageInfo);
  return hasNextPage === true && typeof endCursor === 'string'
    ? findThreads(place, endCursor)
    : `The pull request has no review thread that begins with the comment ${wanted}.`;
}

export const answerTools: { readonly [T in GithubToolName]: AnswerTool<InputOf<T>> } = {
  comment: {
    needsPullRequest: false,
    permissions: (place) => scopeOf(place).permissions,
    list: listPath,
    request: (place, { body }, marker) => ({
      method: 'POST',
      path: createPath(place),
      body: { body: withMarker(body, marker) },
    }),
  },
  review: {
    needsPullRequest: true,
    permissions: pullRequests,
    list: (place) => `${pull(place)}/reviews`,
    request: (place, { event, body, commit_id, comments = [] }, marker) => ({
      method: 'POST',
      path: `${pull(place)}/reviews`,
      body: {
        event,
        body: withMarker(body, marker),
        ...(commit_id === undefined ? {} : { commit_id }),
        comments: comments.map(lineComment),
      },
    }),
  },
  add_labels: {
    needsPullRequest: false,
    permissions: (place) => scopeOf(place).permissions,
    request: ({ repository, number }, { labels }) => ({
      method: 'POST',
      path: `/repos/${repository}/issues/${number}/labels`,
      body: { labels: labels.map(cleanLabel) },
    }),
  },
  request_reviewers: {
    needsPullRequest: true,
    permissions: pullRequests,
    request: (place, { reviewers, team_reviewers }) => ({
      method: 'POST',
      path: `${pull(place)}/requested_reviewers`,
      body: { reviewers, team_reviewers },
    }),
  },
  resolve_thread: {
    needsPullRequest: true,
    // GitHub documents no permission for this mutation. Apps report that it needs both.
    permissions: () => ({ pull_requests: 'write', contents: 'write' }),
    request: (place) => findThreads(place, null),
    next: afterThreads,
  },
};
