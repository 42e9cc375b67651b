/**
 * The parts of the APIs of GitHub and GitLab that open pull requests, for a fake code host (`startFakeGitHost`). The routes of GitHub
 * are below `/api/v3`, those of GitLab below `/api/v4`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { FakeGitHostOptions } from './git-host.ts';

export interface FakePull {
  readonly head: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
  readonly url: string;
  /** Repository of the branch, such as `stranger/site`. Default: the repository of the request. */
  readonly from?: string;
}

export interface FakePullRequestApi {
  readonly pulls: FakePull[];
  /** If set, the fake calls this function once, before it opens the next pull request. */
  before: (() => Promise<unknown>) | undefined;
  /** Branches that have no commits in addition to those of the base branch. */
  readonly empty: Set<string>;
  /** Branches that do not exist on the host. */
  readonly missing: Set<string>;
  /**
   * If set, the answer to the next request that opens a pull request. With `opens`, the fake also opens the pull request, for example
   * although the answer is an error.
   */
  next: { readonly status: number; readonly json: unknown; readonly opens?: boolean } | undefined;
  readonly api: Required<FakeGitHostOptions>['api'];
}

/** Makes the API. If `token` is given, every request must send it as bearer token. Otherwise the fake accepts any token. */
export function makeFakePullRequestApi(token?: string): FakePullRequestApi {
  const pulls: FakePull[] = [];
  const answer = (response: ServerResponse, status: number, json: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://fake');
    const isGitLab = url.pathname.startsWith('/api/v4/');
    const sent = JSON.parse((await text(request)) || '{}');
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`)
      return void answer(response, 401, { message: 'Bad credentials' });
    const show = (pull: FakePull) =>
      isGitLab
        ? { web_url: pull.url }
        : {
            html_url: pull.url,
            head: { ref: pull.head, repo: { full_name: pull.from ?? 'acme/site' } },
            base: { ref: pull.base },
          };
    const branch = /\/repository\/branches\/(.+)$/.exec(url.pathname)?.[1];
    if (branch !== undefined) {
      const isThere = !fake.missing.has(decodeURIComponent(branch));
      return void answer(response, isThere ? 200 : 404, { message: isThere ? 'ok' : '404 Branch Not Found' });
    }
    if (request.method === 'GET') {
      const head = url.searchParams.get(isGitLab ? 'source_branch' : 'head')?.replace(/^[^:]*:/, '');
      const base = url.searchParams.get(isGitLab ? 'target_branch' : 'base');
      const found = pulls.filter((pull) => pull.head === head && (base === null || pull.base === base));
      return void answer(response, 200, found.map(show));
    }
    const head: string = isGitLab ? sent.source_branch : sent.head;
    const base: string = isGitLab ? sent.target_branch : sent.base;
    const open = (): FakePull => {
      const place = isGitLab ? '-/merge_requests' : 'pull';
      const pull = {
        head,
        base,
        title: sent.title,
        body: isGitLab ? sent.description : sent.body,
        draft: sent.draft ?? false,
        url: `https://host.example/acme/site/${place}/${pulls.length + 1}`,
      };
      pulls.push(pull);
      return pull;
    };
    const { before, next } = fake;
    fake.before = undefined;
    await before?.();
    fake.next = undefined;
    if (next !== undefined) {
      if (next.opens) open();
      return void answer(response, next.status, next.json);
    }
    const failed = (errors: object) => answer(response, 422, { message: 'Validation Failed', errors: [errors] });
    if (fake.missing.has(head)) return void failed({ resource: 'PullRequest', field: 'head', code: 'invalid' });
    if (fake.empty.has(head))
      return void failed({
        resource: 'PullRequest',
        code: 'custom',
        message: `No commits between ${base} and ${head}`,
      });
    if (pulls.some((pull) => pull.head === head && pull.base === base))
      return void failed({ code: 'custom', message: `A pull request already exists for acme:${head}.` });
    answer(response, 201, show(open()));
  }

  const fake: FakePullRequestApi = {
    pulls,
    empty: new Set(),
    missing: new Set(),
    next: undefined,
    before: undefined,
    api: (request, response) => {
      if (!/^\/api\/v[34]\//.test(request.url ?? '')) return false;
      void handle(request, response);
      return true;
    },
  };
  return fake;
}
