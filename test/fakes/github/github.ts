/**
 * A GitHub on loopback that holds state: an App, its installations, accounts, repositories, issues and comments. The API is below
 * `/api/v3`, as on a GitHub Enterprise Server. It checks tokens, permissions and bodies, and each of its answers has the form of GitHub's
 * own OpenAPI description. It sends signed webhook deliveries, and keeps them for `GET /app/hook/deliveries`.
 */
import { createHmac, generateKeyPairSync, hash, randomBytes, randomUUID, verify } from 'node:crypto';
import { once } from 'node:events';
import { request as askOther, createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { FakeGitHost } from '../git-host.ts';
import { answerHandlers } from './answers.ts';
import { faultOfAnswer, faultOfRequest } from './check-openapi.ts';
import { checkRunHandlers } from './check-runs.ts';
import {
  accountOf,
  commentOf,
  type FakeAccount,
  type FakeAppState,
  type FakeCheckRun,
  type FakeComment,
  type FakeInstallation,
  type FakeIssue,
  type FakeRepository,
  issueInPayload,
  repositoryInPayload,
  reviewCommentOf,
  type Urls,
} from './objects.ts';
import { personHandlers } from './person-routes.ts';
import { type FakeCheck, pullOf } from './pulls.ts';
import { type Caller, type FakeAnswer, handlers } from './routes.ts';

interface FakeHookDelivery {
  readonly id: number;
  readonly guid: string;
  readonly event: string;
  readonly action: string | null;
  readonly payload: Record<string, unknown>;
  /** Status of the receiver's answer; 0: it could not be reached. */
  status: number;
  readonly deliveredAt: string;
  readonly redelivery: boolean;
  readonly installation: number | null;
}

export interface FakeGithubState {
  readonly urls: Urls;
  readonly app: FakeAppState;
  readonly bot: FakeAccount;
  readonly privateKey: string;
  readonly clientSecret: string;
  readonly webhookSecret: string;
  readonly accounts: FakeAccount[];
  /** Roles in organizations, by `ORGANIZATION_ID USER_ID`. */
  readonly members: Map<string, 'admin' | 'member'>;
  readonly repositories: FakeRepository[];
  readonly installations: FakeInstallation[];
  readonly issues: FakeIssue[];
  readonly checkRuns: FakeCheckRun[];
  readonly checks: FakeCheck[];
  readonly tokens: Map<string, Caller>;
  readonly deliveries: FakeHookDelivery[];
  readonly manifestCodes: Set<string>;
  newId(): number;
}

export interface FakeGithub extends FakeGithubState {
  /** Value for RUNYARD_CODE_HOST_URL. */
  readonly template: string;
  readonly requests: { readonly method: string; readonly path: string }[];
  /** Origin of the host that answers the requests of git; undefined: the fake has no files. */
  gitOrigin: string | undefined;
  /** The host with the files, if people may make branches and pull requests. */
  git: Pick<FakeGitHost, 'branchAt' | 'replace'> | undefined;
  /** The commits of branches that requests have made, by `REPOSITORY_ID BRANCH`. */
  readonly branches: Map<string, string>;
  /** Answers that the fake gave and GitHub would not give. Tests expect none. */
  readonly faults: string[];
  /** Address of the App's webhook; undefined: nothing is sent, so deliveries are only kept. */
  webhookUrl: string | undefined;
  /** The account that the browser is signed in as. The pages of the fake confirm everything at once. */
  browserAccount: FakeAccount | undefined;
  /** Answers the next request that writes with this instead of doing it. `works`: the fake also does it, and only the answer is lost. */
  next: (FakeAnswer & { readonly works?: boolean }) | undefined;
  /** Answers requests for these paths with this status. */
  failing: { readonly path: RegExp; readonly status: number } | undefined;
  account(login: string, type?: FakeAccount['type']): FakeAccount;
  repository(owner: FakeAccount, name: string, isPrivate?: boolean): FakeRepository;
  install(account: FakeAccount, permissions?: Readonly<Record<string, string>>): FakeInstallation;
  /** Opens an issue, or a pull request with `head`, and sends no delivery. */
  issue(
    repository: FakeRepository,
    by: FakeAccount,
    members?: Partial<
      Pick<
        FakeIssue,
        'title' | 'body' | 'association' | 'head' | 'earlierHeads' | 'diffLines' | 'headRepository' | 'headBranch'
      >
    >,
  ): FakeIssue;
  /** Sends the event of an opened issue or pull request. */
  open(issue: FakeIssue): Promise<FakeHookDelivery>;
  /** Sends an event `pull_request`. */
  pull(issue: FakeIssue, by: FakeAccount, action: string, members?: object): Promise<FakeHookDelivery>;
  /** Writes a comment and sends its event. `thread`: the review comment that begins the thread of a review comment. */
  comment(issue: FakeIssue, by: FakeAccount, body: string, options?: CommentOptions): Promise<FakeHookDelivery>;
  /** Submits a review with comments on lines, and sends its events: one for the review, and one for each comment. */
  review(
    issue: FakeIssue,
    by: FakeAccount,
    body: string,
    comments: readonly string[],
    association?: string,
  ): Promise<FakeHookDelivery[]>;
  send(event: string, payload: Record<string, unknown>): Promise<FakeHookDelivery>;
  redeliver(delivery: FakeHookDelivery): Promise<FakeHookDelivery>;
  /** Returns the code with which the host sends a person back who has authorized the App. */
  authorize(user: FakeAccount, url: string): URLSearchParams;
  close(): Promise<void>;
}

export interface CommentOptions {
  readonly association?: string;
  readonly kind?: 'issue' | 'review';
  readonly thread?: number;
  readonly byApp?: boolean;
}

export const usualPermissions = {
  metadata: 'read',
  issues: 'write',
  pull_requests: 'write',
  contents: 'write',
  members: 'read',
};

/** Starts the fake. The caller closes it. */
export async function startFakeGithub(): Promise<FakeGithub> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const codes = new Map<
    string,
    { readonly user: FakeAccount; readonly challenge: string | null; readonly redirect: string | null }
  >();
  let ids = 1_000;
  const newId = () => (ids += 1);
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const web = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const urls = { web, api: `${web}/api/v3` };
  const owner: FakeAccount = { id: newId(), login: 'app-owner', type: 'User' };
  const app: FakeAppState = {
    id: 123456,
    slug: 'runyard-test',
    owner,
    permissions: usualPermissions,
    clientId: 'Iv1.fake',
  };
  const time = () => new Date().toISOString().replace(/\.\d+Z$/, 'Z');

  const isApp = (jwt: string): boolean => {
    const [head = '', body = '', signature = ''] = jwt.split('.');
    if (!verify('RSA-SHA256', Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, 'base64url')))
      return false;
    const { iss, iat, exp } = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    const now = Date.now() / 1000;
    return [String(app.id), app.clientId].includes(String(iss)) && iat <= now && exp > now && exp - now <= 600;
  };

  const callerOf = ({ headers: { authorization = '' } }: IncomingMessage): Caller => {
    const token = authorization.replace(/^(Bearer|token) /i, '');
    const known = fake.tokens.get(token);
    if (known) return known;
    return token.split('.').length === 3 && isApp(token) ? { kind: 'app' } : { kind: 'nobody' };
  };

  /** The exchange of a code for a person's token, which is no part of the API. */
  const exchange = (form: Readonly<Record<string, string>>): unknown => {
    const code = codes.get(form.code ?? '');
    codes.delete(form.code ?? '');
    const verifier = form.code_verifier ?? '';
    const isRight =
      code !== undefined &&
      form.client_id === app.clientId &&
      form.client_secret === fake.clientSecret &&
      (code.challenge === null || createHashOf(verifier) === code.challenge) &&
      (code.redirect === null || form.redirect_uri === code.redirect);
    // GitHub answers 200 also to a wrong code.
    if (!isRight)
      return { error: 'bad_verification_code', error_description: 'The code passed is incorrect or expired.' };
    const token = `ghu_${randomBytes(18).toString('hex')}`;
    fake.tokens.set(token, { kind: 'user', user: code.user });
    return { access_token: token, token_type: 'bearer', scope: '' };
  };

  /** Returns where a page of the host sends the browser; null: the address is no page. */
  function pageOf({ pathname, searchParams, href }: URL, sent: string): string | null {
    const user = fake.browserAccount;
    if (user === undefined) return null;
    if (pathname === '/login/oauth/authorize')
      return `${searchParams.get('redirect_uri')}?${fake.authorize(user, href)}`;
    if (!pathname.endsWith('/settings/apps/new')) return null;
    const code = randomBytes(10).toString('hex');
    fake.manifestCodes.add(code);
    const manifest = JSON.parse(new URLSearchParams(sent).get('manifest') ?? '{}');
    const back = new URL(manifest.redirect_url);
    back.searchParams.set('code', code);
    back.searchParams.set('state', searchParams.get('state') ?? '');
    fake.webhookUrl = manifest.hook_attributes.url;
    return back.href;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', web);
    const method = request.method ?? 'GET';
    if (fake.gitOrigin !== undefined && url.pathname.includes('.git/'))
      return forward(request, response, fake.gitOrigin);
    const sent = await text(request);
    fake.requests.push({ method, path: url.pathname });
    const reply = ({ status, body, text, headers = {} }: FakeAnswer) =>
      response
        .writeHead(status, { 'content-type': text === undefined ? 'application/json' : 'text/plain', ...headers })
        .end(text ?? JSON.stringify(body));
    if (url.pathname === '/login/oauth/access_token')
      return void reply({ status: 200, body: exchange(JSON.parse(sent)) });
    const location = pageOf(url, sent);
    if (location !== null) return void response.writeHead(302, { location }).end();
    const path = url.pathname.replace(/^\/api\/v3/, '');
    if (fake.failing?.path.test(path)) return void reply({ status: fake.failing.status, body: { message: 'failing' } });
    const body = sent === '' ? {} : JSON.parse(sent);
    const given = method === 'GET' || path.startsWith('/app') ? undefined : fake.next;
    if (given) fake.next = undefined;
    const made = given && !given.works ? given : await work(method, path, url.searchParams, body, request);
    const isRest = path !== '/api/graphql';
    const fault = (given && !given.works) || !isRest ? null : faultOfAnswer(method, path, made.status, made.body);
    if (fault !== null) fake.faults.push(`${method} ${path} ${made.status}: ${fault}`);
    reply(given ?? made);
  }

  async function work(
    method: string,
    path: string,
    query: URLSearchParams,
    body: Record<string, unknown>,
    request: IncomingMessage,
  ): Promise<FakeAnswer> {
    const caller = callerOf(request);
    const ofPerson = caller.kind === 'user' ? personHandlers : [];
    for (const [of, pattern, handler] of [...ofPerson, ...handlers, ...answerHandlers, ...checkRunHandlers]) {
      const parts = of === method ? pattern.exec(path)?.slice(1) : undefined;
      if (parts === undefined) continue;
      const fault = faultOfRequest(method, path, body);
      if (fault !== null) return { status: 422, body: { message: fault } };
      return handler(fake, {
        caller,
        parts: parts.map(decodeURIComponent),
        query,
        body,
        accept: request.headers.accept ?? '',
      });
    }
    return { status: 404, body: { message: 'Not Found' } };
  }

  async function post(delivery: FakeHookDelivery): Promise<FakeHookDelivery> {
    if (fake.webhookUrl === undefined) return delivery;
    const body = JSON.stringify(delivery.payload);
    const signature = createHmac('sha256', fake.webhookSecret).update(body).digest('hex');
    const answered = await fetch(fake.webhookUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'GitHub-Hookshot/fake',
        'x-github-event': delivery.event,
        'x-github-delivery': delivery.guid,
        'x-github-hook-installation-target-id': String(app.id),
        'x-github-hook-installation-target-type': 'integration',
        'x-hub-signature-256': `sha256=${signature}`,
      },
      body,
    }).catch(() => null);
    await answered?.arrayBuffer();
    delivery.status = answered?.status ?? 0;
    return delivery;
  }

  const deliver = (event: string, payload: Record<string, unknown>, guid: string, redelivery: boolean) => {
    const delivery: FakeHookDelivery = {
      id: newId(),
      guid,
      event,
      action: typeof payload.action === 'string' ? payload.action : null,
      payload,
      status: 0,
      deliveredAt: time(),
      redelivery,
      installation: (payload.installation as { id: number } | undefined)?.id ?? null,
    };
    fake.deliveries.push(delivery);
    return post(delivery);
  };

  const about = (issue: FakeIssue, sender: FakeAccount) => ({
    repository: repositoryInPayload(issue.repository, urls),
    sender: accountOf(sender, urls),
    installation: { id: fake.installations.find(({ account }) => account.id === issue.repository.owner.id)?.id ?? 0 },
  });

  const fake: FakeGithub = {
    urls,
    app,
    bot: { id: newId(), login: `${app.slug}[bot]`, type: 'Bot' },
    privateKey: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    clientSecret: randomBytes(20).toString('hex'),
    webhookSecret: randomBytes(20).toString('hex'),
    accounts: [owner],
    members: new Map(),
    repositories: [],
    installations: [],
    issues: [],
    checkRuns: [],
    checks: [],
    tokens: new Map(),
    deliveries: [],
    manifestCodes: new Set(),
    newId,
    template: `${web}/{owner}/{repo}.git`,
    requests: [],
    gitOrigin: undefined,
    git: undefined,
    branches: new Map(),
    faults: [],
    webhookUrl: undefined,
    next: undefined,
    failing: undefined,
    browserAccount: undefined,
    account: (login, type = 'User') => {
      const made = { id: newId(), login, type };
      fake.accounts.push(made);
      return made;
    },
    repository: (of, name, isPrivate = false) => {
      const made = { id: newId(), owner: of, name, isPrivate };
      fake.repositories.push(made);
      return made;
    },
    install: (account, permissions = usualPermissions) => {
      const made = { id: newId(), account, permissions, isSuspended: false };
      fake.installations.push(made);
      return made;
    },
    issue: (repository, by, members = {}) => {
      const number = fake.issues.filter((each) => each.repository.id === repository.id).length + 1;
      const usual = { title: `Issue ${number}`, body: '', association: 'MEMBER' };
      const lists = { comments: [], reviewComments: [], reviews: [], labels: [], reviewers: [], resolved: [] };
      const made: FakeIssue = { number, repository, user: by, ...lists, ...usual, ...members };
      fake.issues.push(made);
      return made;
    },
    open: (issue) =>
      issue.head === undefined
        ? fake.send('issues', { action: 'opened', issue: issueInPayload(issue, urls), ...about(issue, issue.user) })
        : fake.pull(issue, issue.user, 'opened'),
    pull: (issue, by, action, members = {}) =>
      fake.send('pull_request', {
        action,
        number: issue.number,
        pull_request: pullOf(issue, urls),
        ...about(issue, by),
        ...members,
      }),
    comment: (issue, by, body, { association = 'MEMBER', kind = 'issue', thread, byApp = false } = {}) => {
      const at = time();
      const comment: FakeComment = {
        id: newId(),
        user: by,
        body,
        createdAt: at,
        updatedAt: at,
        association,
        byApp,
        ...(thread === undefined ? {} : { inReplyTo: thread }),
      };
      const action = 'created';
      if (kind === 'issue') {
        issue.comments.push(comment);
        const members = { issue: issueInPayload(issue, urls), comment: commentOf(comment, issue, app, urls) };
        return fake.send('issue_comment', { action, ...members, ...about(issue, by) });
      }
      issue.reviewComments.push(comment);
      const members = {
        comment: reviewCommentOf(comment, issue, urls),
        pull_request: pullOf(issue, urls),
      };
      return fake.send('pull_request_review_comment', { action, ...members, ...about(issue, by) });
    },
    review: async (issue, by, body, comments, association = 'MEMBER') => {
      const at = time();
      const reviewId = newId();
      const made = comments.map((text) => ({
        ...{ id: newId(), user: by, body: text, createdAt: at, updatedAt: at, association, byApp: false, reviewId },
      }));
      issue.reviewComments.push(...made);
      const members = { pull_request: pullOf(issue, urls), ...about(issue, by) };
      const user = accountOf(by, urls);
      const review = {
        id: reviewId,
        user,
        body,
        state: 'commented',
        author_association: association,
        submitted_at: at,
      };
      const sent = [await fake.send('pull_request_review', { action: 'submitted', review, ...members })];
      for (const comment of made) {
        const payload = { action: 'created', comment: reviewCommentOf(comment, issue, urls), ...members };
        sent.push(await fake.send('pull_request_review_comment', payload));
      }
      return sent;
    },
    send: (event, payload) => deliver(event, payload, randomUUID(), false),
    redeliver: ({ event, payload, guid }) => deliver(event, payload, guid, true),
    authorize: (user, address) => {
      const { searchParams: asked } = new URL(address);
      const code = randomBytes(10).toString('hex');
      codes.set(code, { user, challenge: asked.get('code_challenge'), redirect: asked.get('redirect_uri') });
      return new URLSearchParams({ code, state: asked.get('state') ?? '' });
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return fake;
}

/** Passes a request on to another host. */
function forward(request: IncomingMessage, response: ServerResponse, origin: string): void {
  const { method, url = '/', headers } = request;
  const asked = askOther(`${origin}${url}`, { method, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
    answered.pipe(response);
  });
  asked.on('error', () => response.destroy());
  request.pipe(asked);
}

const createHashOf = (verifier: string): string => hash('sha256', verifier, 'base64url');
