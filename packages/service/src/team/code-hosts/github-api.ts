/** Sends requests to the API of GitHub: as an App, as an installation of an App, or as a person. Obeys the limits that GitHub announces. */
import { askCodeHost, type HostAnswer } from './ask.ts';
import { readAppKey, signAppToken } from './installation-tokens.ts';

/** Addresses of a GitHub host. */
export interface GithubHost {
  /** Origin of the pages, such as `https://github.com`. */
  readonly web: string;
  /** Base URL of the API, without a slash at the end. */
  readonly api: string;
}

/** An App, as whose it sends requests. */
export interface GithubAppKey {
  readonly uid: string;
  readonly appId: string;
  readonly host: GithubHost;
  /** Returns the private key as PEM. */
  privateKey(): string;
}

/** The limits of an installation's token: only this repository, and only these permissions. */
export interface TokenScope {
  readonly installationId: string;
  readonly repositoryId: number;
  readonly permissions: Readonly<Record<string, 'read' | 'write'>>;
}

/** The answer of GitHub. The comment of each kind says what the caller can do. */
export type GithubAnswer =
  | {
      readonly kind: 'ok';
      readonly status: number;
      /** The parsed JSON, or the text of a diff. */
      readonly body: unknown;
      /** True: the diff is longer. */
      readonly isCut: boolean;
      /** Addresses of the next and of the last page of a list; undefined: there is no other page. */
      readonly next: string | undefined;
      readonly last: string | undefined;
    }
  /** Try again after this time: a limit of GitHub is used up. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number }
  /** Trying again does not help. `message`: GitHub's own words, which the sender of a webhook may have influenced. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** Try again later. It is not known whether GitHub has done it. */
  | { readonly kind: 'unavailable'; readonly message: string };

export interface GithubRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Path below the base of the API, with its query. `/graphql`: the other API, which a GitHub Enterprise Server has beside this base. */
  readonly path: string;
  readonly body?: unknown;
  /** `diff`: GitHub answers with the text of a diff, of which only the beginning is read. Default: JSON. */
  readonly accept?: 'json' | 'diff';
  /** Maximum size of the answer. Default: 2 MB. */
  readonly maxBytes?: number;
}

export interface GithubApi {
  asApp(app: GithubAppKey, request: GithubRequest): Promise<GithubAnswer>;
  asInstallation(app: GithubAppKey, scope: TokenScope, request: GithubRequest): Promise<GithubAnswer>;
  /** `token`: the token of a person. Absent: without a credential. */
  asPerson(host: GithubHost, token: string | undefined, request: GithubRequest): Promise<GithubAnswer>;
  /** Exchanges the code of an authorization for the person's token. */
  exchangeCode(host: GithubHost, form: Readonly<Record<string, string>>): Promise<GithubAnswer>;
}

const askMs = 9_000;
const usualAnswerBytes = 2 * 1024 * 1024;
/** A token is not used in the last minutes before it expires. */
const spareMs = 5 * 60_000;
const maxTokens = 2_000;
/** GitHub asks for at least a minute if it names no time (docs.github.com, "Best practices for using the REST API"). */
const usualWaitMs = 60_000;
const longestWaitMs = 3_600_000;

const headerOf = (answer: HostAnswer, name: string): string | undefined => {
  const value = answer.headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Returns the time for which GitHub refuses further requests; null if the answer is not about a limit. */
function limitOf(answer: HostAnswer, message: string, nowMs: number): number | null {
  if (answer.status !== 403 && answer.status !== 429) return null;
  const after = Number(headerOf(answer, 'retry-after') ?? Number.NaN);
  const clamp = (ms: number) => Math.min(longestWaitMs, Math.max(1_000, ms));
  if (Number.isFinite(after)) return clamp(after * 1000);
  if (headerOf(answer, 'x-ratelimit-remaining') === '0') {
    const reset = Number(headerOf(answer, 'x-ratelimit-reset') ?? Number.NaN);
    return clamp(Number.isFinite(reset) ? reset * 1000 - nowMs : usualWaitMs);
  }
  return answer.status === 429 || /secondary rate limit/i.test(message) ? usualWaitMs : null;
}

/** Returns GitHub's words for a refusal. In `errors`, GitHub says which part of a request is wrong. */
function messageOf(body: unknown): string {
  const { message, errors } = Object(body);
  const more = (Array.isArray(errors) ? errors : []).map((each) =>
    typeof each === 'string' ? each : String(Object(each).message ?? Object(each).code ?? ''),
  );
  return [String(message ?? ''), ...more.filter((each) => each !== '')].join(': ').slice(0, 500);
}

function toAnswer(answer: HostAnswer, accept: GithubRequest['accept'], nowMs: number): GithubAnswer {
  const { isCut } = answer;
  if (accept === 'diff' && answer.status === 200)
    return { kind: 'ok', status: 200, body: answer.bytes.toString('utf8'), isCut, next: undefined, last: undefined };
  if (isCut) return { kind: 'refused', status: answer.status, message: 'the answer is too large' };
  let body: unknown;
  try {
    body = answer.bytes.length === 0 ? undefined : JSON.parse(answer.bytes.toString('utf8'));
  } catch {
    return { kind: 'unavailable', message: 'GitHub did not answer with JSON' };
  }
  const { status } = answer;
  if (status >= 200 && status < 300) {
    const linked = (rel: string) => new RegExp(`<([^<>]+)>; rel="${rel}"`).exec(headerOf(answer, 'link') ?? '')?.[1];
    return { kind: 'ok', status, body, isCut, next: linked('next'), last: linked('last') };
  }
  const message = messageOf(body);
  const retryAfterMs = limitOf(answer, message, nowMs);
  if (retryAfterMs !== null) return { kind: 'limited', retryAfterMs };
  return status >= 500
    ? { kind: 'unavailable', message: `GitHub answered ${status}` }
    : { kind: 'refused', status, message };
}

const urlOf = ({ api }: GithubHost, { path }: GithubRequest): string =>
  path === '/graphql' ? `${api.replace(/\/v3$/, '')}/graphql` : `${api}${path}`;

/** Creates the functions of `GithubApi`, with a cache of tokens in this process. `now` returns the Unix time in milliseconds. */
export function openGithubApi(now: () => number = Date.now): GithubApi {
  const tokens = new Map<string, { readonly token: string; readonly until: number }>();
  /** Until these times, GitHub refuses requests of an installation. */
  const paused = new Map<string, number>();

  async function ask(
    url: string,
    authorization: string | undefined,
    request: Omit<GithubRequest, 'path'>,
    mediaType = `application/vnd.github${request.accept === 'diff' ? '.diff' : '+json'}`,
  ) {
    const { method, body, accept, maxBytes = usualAnswerBytes } = request;
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      ...(authorization === undefined ? {} : { authorization: `Bearer ${authorization}` }),
      accept: mediaType,
      'x-github-api-version': '2022-11-28',
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...(method === 'GET' ? {} : { 'content-length': String(sent?.length ?? 0) }),
    };
    const signal = AbortSignal.timeout(askMs);
    const question = { url: new URL(url), method, headers, signal, maxBytes };
    try {
      return toAnswer(await askCodeHost({ ...question, ...(sent ? { body: sent } : {}) }), accept, now());
    } catch {
      return { kind: 'unavailable', message: 'GitHub could not be reached' } as const;
    }
  }

  async function asApp(app: GithubAppKey, request: GithubRequest): Promise<GithubAnswer> {
    const key = readAppKey(app.privateKey());
    if (typeof key === 'string') return { kind: 'refused', status: 401, message: `the private key of the App ${key}` };
    return await ask(`${app.host.api}${request.path}`, signAppToken(app.appId, key, now()), request);
  }

  async function tokenFor(app: GithubAppKey, scope: TokenScope): Promise<GithubAnswer | string> {
    const { installationId, repositoryId, permissions } = scope;
    const name = JSON.stringify([app.uid, installationId, repositoryId, permissions]);
    const known = tokens.get(name);
    if (known && known.until > now()) return known.token;
    const path = `/app/installations/${installationId}/access_tokens`;
    const body = { repository_ids: [repositoryId], permissions };
    const answer = await asApp(app, { method: 'POST', path, body });
    if (answer.kind !== 'ok') return answer;
    const token: unknown = Reflect.get(Object(answer.body), 'token');
    if (typeof token !== 'string') return { kind: 'unavailable', message: 'GitHub gave no token to the App' };
    const ends = Date.parse(String(Reflect.get(Object(answer.body), 'expires_at')));
    if (tokens.size >= maxTokens) tokens.clear();
    tokens.set(name, { token, until: (Number.isNaN(ends) ? now() : ends) - spareMs });
    return token;
  }

  return {
    asApp,
    asInstallation: async (app, scope, request) => {
      const place = `${app.uid} ${scope.installationId}`;
      const waitMs = (paused.get(place) ?? 0) - now();
      if (waitMs > 0) return { kind: 'limited', retryAfterMs: waitMs };
      paused.delete(place);
      const token = await tokenFor(app, scope);
      const answer = typeof token === 'string' ? await ask(urlOf(app.host, request), token, request) : token;
      if (answer.kind === 'limited') paused.set(place, now() + answer.retryAfterMs);
      // The token may have been revoked, so the next request uses a new one.
      if (answer.kind === 'refused' && answer.status === 401) tokens.clear();
      return answer;
    },
    asPerson: (host, token, request) => ask(`${host.api}${request.path}`, token, request),
    exchangeCode: (host, form) => {
      const url = `${host.web}/login/oauth/access_token`;
      return ask(url, undefined, { method: 'POST', body: form }, 'application/json');
    },
  };
}
