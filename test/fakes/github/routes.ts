/** The requests that the fake answers, with GitHub's permissions. */
import { randomBytes } from 'node:crypto';
import { sampleOf } from './check-openapi.ts';
import type { FakeGithubState } from './github.ts';
import {
  accountOf,
  appOf,
  commentOf,
  type FakeAccount,
  type FakeComment,
  type FakeInstallation,
  type FakeIssue,
  type FakeRepository,
  installationOf,
  publicUserOf,
  reviewCommentOf,
} from './objects.ts';
import { pullOf } from './pulls.ts';

/** The sender of a request. */
export type Caller =
  | { readonly kind: 'app' }
  | {
      readonly kind: 'installation';
      readonly installation: FakeInstallation;
      readonly permissions: Readonly<Record<string, string>>;
      readonly repositories: readonly number[] | null;
    }
  | { readonly kind: 'user'; readonly user: FakeAccount }
  | { readonly kind: 'nobody' };

export interface FakeRequest {
  readonly caller: Caller;
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Record<string, unknown>;
  readonly accept: string;
}

export interface FakeAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer, if it is no JSON. */
  readonly text?: string;
}

export const refuse = (status: number, message: string): FakeAnswer => ({
  status,
  body: { message, documentation_url: '' },
});
export const notFound = refuse(404, 'Not Found');
const isWrite = new Set(['write', 'admin']);

/** Returns the repository if the caller may use it with this permission, else the refusal of GitHub. */
export function repositoryFor(
  state: FakeGithubState,
  { caller, parts: [owner = '', name = ''] }: FakeRequest,
  permission: string,
  access: 'read' | 'write',
): FakeRepository | FakeAnswer {
  const found = state.repositories.find(
    (each) => each.name === name && each.owner.login.toLowerCase() === owner.toLowerCase(),
  );
  if (found === undefined) return notFound;
  if (caller.kind === 'user') {
    const isCollaborator =
      found.owner.id === caller.user.id || state.members.has(`${found.owner.id} ${caller.user.id}`);
    if (isCollaborator || (access === 'read' && !found.isPrivate)) return found;
    return found.isPrivate ? notFound : refuse(403, 'Must have write access');
  }
  if (caller.kind !== 'installation') return notFound;
  if (caller.installation.account.id !== found.owner.id) return notFound;
  if (caller.repositories !== null && !caller.repositories.includes(found.id)) return notFound;
  const granted = caller.permissions[permission];
  if (granted === undefined || (access === 'write' && !isWrite.has(granted)))
    return refuse(403, 'Resource not accessible by integration');
  return found;
}

const isAnswer = (value: FakeRepository | FakeAnswer): value is FakeAnswer => 'status' in value;
const now = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z');

/** Returns one page of a list, with the addresses of the next and of the last one. */
export function listed<T>(all: readonly T[], { query }: FakeRequest, toItem: (each: T) => unknown): FakeAnswer {
  const size = Math.min(100, Number(query.get('per_page') ?? 30));
  const number = Number(query.get('page') ?? 1);
  const last = Math.max(1, Math.ceil(all.length / size));
  const linkTo = (page: number, rel: string) =>
    `<https://fake.invalid/list?per_page=${size}&page=${page}>; rel="${rel}"`;
  const link = number < last ? { link: `${linkTo(number + 1, 'next')}, ${linkTo(last, 'last')}` } : {};
  return { status: 200, body: all.slice((number - 1) * size, number * size).map(toItem), headers: link };
}

const sinceOf = (comments: readonly FakeComment[], { query }: FakeRequest): FakeComment[] => {
  const since = query.get('since');
  return comments.filter(({ updatedAt }) => since === null || updatedAt >= since);
};

export function issueOf(
  state: FakeGithubState,
  repository: FakeRepository,
  number: string | undefined,
): FakeIssue | undefined {
  return state.issues.find((each) => each.repository.id === repository.id && String(each.number) === number);
}

export function byApp(state: FakeGithubState, body: string): FakeComment {
  const time = now();
  const user = state.bot;
  return { id: state.newId(), user, body, createdAt: time, updatedAt: time, association: 'NONE', byApp: true };
}

function findComment(
  state: FakeGithubState,
  repository: FakeRepository,
  id: string | undefined,
  of: 'comments' | 'reviewComments',
) {
  for (const issue of state.issues) {
    const comment =
      issue.repository.id === repository.id ? issue[of].find((each) => String(each.id) === id) : undefined;
    if (comment) return { issue, comment };
  }
  return undefined;
}

export type Handler = (state: FakeGithubState, request: FakeRequest) => FakeAnswer;

const forApp =
  (work: Handler): Handler =>
  (state, request) =>
    request.caller.kind === 'app' ? work(state, request) : refuse(401, 'A JSON web token could not be decoded');

export const inRepository =
  (
    permission: string,
    access: 'read' | 'write',
    work: (state: FakeGithubState, request: FakeRequest, repository: FakeRepository) => FakeAnswer,
  ): Handler =>
  (state, request) => {
    const repository = repositoryFor(state, request, permission, access);
    return isAnswer(repository) ? repository : work(state, request, repository);
  };

/** The permission with which an App may comment: `issues` for an issue, and either of both for a pull request. */
const commenting = 'issues';

function tokenFor(state: FakeGithubState, { parts: [id], body }: FakeRequest): FakeAnswer {
  const installation = state.installations.find((each) => String(each.id) === id);
  if (installation === undefined) return notFound;
  if (installation.isSuspended) return refuse(403, 'This installation has been suspended');
  const wanted = (body.permissions ?? installation.permissions) as Record<string, string>;
  const lacks = Object.entries(wanted).filter(
    ([name, access]) =>
      !(access === 'read' || isWrite.has(installation.permissions[name] ?? '')) ||
      installation.permissions[name] === undefined,
  );
  if (lacks.length > 0) return refuse(422, 'The permissions requested are not granted to this installation.');
  const all = state.repositories.filter(({ owner }) => owner.id === installation.account.id);
  const own = all.map((each) => each.id);
  const names = body.repositories as string[] | undefined;
  const repositories =
    names?.map((name) => all.find((each) => each.name === name)?.id ?? 0) ??
    (body.repository_ids as number[] | undefined) ??
    null;
  if (repositories?.some((each) => !own.includes(each)))
    return refuse(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    );
  const token = `ghs_${randomBytes(18).toString('hex')}`;
  state.tokens.set(token, { kind: 'installation', installation, permissions: wanted, repositories });
  return {
    status: 201,
    body: {
      token,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      permissions: wanted,
      repository_selection: 'selected',
      repositories: all
        .filter(({ id: own }) => repositories?.includes(own))
        .map((each) =>
          sampleOf('repository', {
            id: each.id,
            name: each.name,
            full_name: `${each.owner.login}/${each.name}`,
            private: each.isPrivate,
          }),
        ),
    },
  };
}

const hookItem = ({
  id,
  guid,
  event,
  action,
  status,
  deliveredAt,
  redelivery,
  installation,
  payload,
}: FakeGithubState['deliveries'][number]) => ({
  id,
  guid,
  delivered_at: deliveredAt,
  redelivery,
  duration: 0.1,
  status: status >= 200 && status < 300 ? 'OK' : 'failed',
  status_code: status,
  event,
  action,
  installation_id: installation,
  repository_id: Number(Object(Object(payload).repository).id ?? 0) || null,
});

/** Each request with its method and its path below the base of the API. The groups of the path become `parts`. */
export const handlers: readonly (readonly [method: string, path: RegExp, work: Handler])[] = [
  ['GET', /^\/app$/, forApp((state) => ({ status: 200, body: appOf(state.app, state.urls) }))],
  [
    'GET',
    /^\/app\/installations\/(\d+)$/,
    forApp((state, { parts: [id] }) => {
      const found = state.installations.find((each) => String(each.id) === id);
      return found ? { status: 200, body: installationOf(found, state.app, state.urls) } : notFound;
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/installation$/,
    forApp((state, { parts: [owner] }) => {
      const found = state.installations.find(({ account }) => account.login === owner);
      return found ? { status: 200, body: installationOf(found, state.app, state.urls) } : notFound;
    }),
  ],
  ['POST', /^\/app\/installations\/(\d+)\/access_tokens$/, forApp(tokenFor)],
  [
    'GET',
    /^\/app\/hook\/deliveries$/,
    forApp((state, request) => {
      const after = Number(request.query.get('cursor') ?? Number.MAX_SAFE_INTEGER);
      const size = Number(request.query.get('per_page') ?? 30);
      const older = state.deliveries.filter(({ id }) => id < after).toReversed();
      const some = older.slice(0, size);
      const last = some.at(-1)?.id;
      const link = `<${state.urls.api}/app/hook/deliveries?per_page=${size}&cursor=${last}>; rel="next"`;
      return { status: 200, body: some.map(hookItem), ...(older.length > size ? { headers: { link } } : {}) };
    }),
  ],
  [
    'GET',
    /^\/app\/hook\/deliveries\/(\d+)$/,
    forApp((state, { parts: [id] }) => {
      const found = state.deliveries.find((each) => String(each.id) === id);
      if (found === undefined) return notFound;
      const request = {
        headers: { 'X-GitHub-Event': found.event, 'X-GitHub-Delivery': found.guid },
        payload: found.payload,
      };
      return { status: 200, body: { ...hookItem(found), request, response: { headers: null, payload: null } } };
    }),
  ],
  [
    'POST',
    /^\/app-manifests\/([\w-]+)\/conversions$/,
    (state, { parts: [code = ''] }) => {
      if (!state.manifestCodes.delete(code)) return notFound;
      const { clientSecret: client_secret, webhookSecret: webhook_secret, privateKey: pem } = state;
      const secrets = { client_id: state.app.clientId, client_secret, webhook_secret, pem };
      return { status: 201, body: { ...appOf(state.app, state.urls), ...secrets } };
    },
  ],
  [
    'GET',
    /^\/user$/,
    (state, { caller }) =>
      caller.kind === 'user'
        ? { status: 200, body: publicUserOf(caller.user, state.urls) }
        : refuse(401, 'Bad credentials'),
  ],
  [
    'GET',
    /^\/user\/memberships\/orgs\/([\w-]+)$/,
    (state, { caller, parts: [login = ''] }) => {
      if (caller.kind !== 'user') return refuse(401, 'Bad credentials');
      const org = state.accounts.find((each) => each.login === login && each.type === 'Organization');
      const role = org && state.members.get(`${org.id} ${caller.user.id}`);
      if (org === undefined || role === undefined) return notFound;
      const url = `${state.urls.api}/orgs/${login}`;
      const organization = {
        login,
        id: org.id,
        node_id: `O_${org.id}`,
        url,
        repos_url: `${url}/repos`,
        events_url: `${url}/events`,
        hooks_url: `${url}/hooks`,
        issues_url: `${url}/issues`,
        members_url: `${url}/members{/member}`,
        public_members_url: `${url}/public_members{/member}`,
        avatar_url: '',
        description: null,
      };
      const membership = `${url}/memberships/${caller.user.login}`;
      return {
        status: 200,
        body: {
          url: membership,
          state: 'active',
          role,
          organization_url: url,
          organization,
          user: accountOf(caller.user, state.urls),
        },
      };
    },
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/issues\/(\d+)\/comments$/,
    inRepository(commenting, 'read', (state, request, repository) => {
      const issue = issueOf(state, repository, request.parts[2]);
      if (issue === undefined) return notFound;
      return listed(sinceOf(issue.comments, request), request, (each) => commentOf(each, issue, state.app, state.urls));
    }),
  ],
  [
    'POST',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/issues\/(\d+)\/comments$/,
    inRepository(commenting, 'write', (state, { parts, body }, repository) => {
      const issue = issueOf(state, repository, parts[2]);
      if (issue === undefined) return notFound;
      const comment = byApp(state, String(body.body));
      issue.comments.push(comment);
      return { status: 201, body: commentOf(comment, issue, state.app, state.urls) };
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/issues\/comments\/(\d+)$/,
    inRepository(commenting, 'read', (state, { parts }, repository) => {
      const found = findComment(state, repository, parts[2], 'comments');
      return found ? { status: 200, body: commentOf(found.comment, found.issue, state.app, state.urls) } : notFound;
    }),
  ],
  [
    'PATCH',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/issues\/comments\/(\d+)$/,
    inRepository(commenting, 'write', (state, { parts, body }, repository) => {
      const found = findComment(state, repository, parts[2], 'comments');
      if (found === undefined) return notFound;
      Object.assign(found.comment, { body: String(body.body), updatedAt: now() });
      return { status: 200, body: commentOf(found.comment, found.issue, state.app, state.urls) };
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)$/,
    inRepository('pull_requests', 'read', (state, { parts, accept }, repository) => {
      const issue = issueOf(state, repository, parts[2]);
      if (!issue?.head) return notFound;
      return {
        status: 200,
        body: pullOf(issue, state.urls),
        ...(/diff/.test(accept) ? { text: issue.diff ?? '' } : {}),
      };
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/reviews\/(\d+)\/comments$/,
    inRepository('pull_requests', 'read', (state, request, repository) => {
      const issue = issueOf(state, repository, request.parts[2]);
      if (issue === undefined) return notFound;
      const found = issue.reviewComments.filter(({ reviewId }) => String(reviewId) === request.parts[3]);
      const positions = { position: 1, original_position: 1 };
      return listed(found, request, (each) => ({ ...reviewCommentOf(each, issue, state.urls), ...positions }));
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/comments$/,
    inRepository('pull_requests', 'read', (state, request, repository) => {
      const issue = issueOf(state, repository, request.parts[2]);
      if (!issue?.head) return notFound;
      const found = sinceOf(issue.reviewComments, request);
      const sorted = request.query.get('direction') === 'desc' ? found.toReversed() : found;
      return listed(sorted, request, (each) => reviewCommentOf(each, issue, state.urls));
    }),
  ],
  [
    'POST',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/(\d+)\/comments\/(\d+)\/replies$/,
    inRepository('pull_requests', 'write', (state, { parts, body }, repository) => {
      const issue = issueOf(state, repository, parts[2]);
      const first = issue?.reviewComments.find(({ id }) => String(id) === parts[3]);
      // GitHub accepts replies only to the first comment of a thread.
      if (!issue?.head || first === undefined || first.inReplyTo !== undefined) return notFound;
      const comment = { ...byApp(state, String(body.body)), inReplyTo: first.id };
      issue.reviewComments.push(comment);
      return { status: 201, body: reviewCommentOf(comment, issue, state.urls) };
    }),
  ],
  [
    'GET',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/comments\/(\d+)$/,
    inRepository('pull_requests', 'read', (state, { parts }, repository) => {
      const found = findComment(state, repository, parts[2], 'reviewComments');
      return found ? { status: 200, body: reviewCommentOf(found.comment, found.issue, state.urls) } : notFound;
    }),
  ],
  [
    'PATCH',
    /^\/repos\/([\w.-]+)\/([\w.-]+)\/pulls\/comments\/(\d+)$/,
    inRepository('pull_requests', 'write', (state, { parts, body }, repository) => {
      const found = findComment(state, repository, parts[2], 'reviewComments');
      if (found === undefined) return notFound;
      Object.assign(found.comment, { body: String(body.body), updatedAt: now() });
      return { status: 200, body: reviewCommentOf(found.comment, found.issue, state.urls) };
    }),
  ],
];
