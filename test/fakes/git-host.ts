/**
 * A code host on loopback. The real `git http-backend` serves bare repositories at `/{owner}/{repo}.git` over git's smart HTTP
 * protocol. The host can require a token, redirects renamed repositories, and records its requests.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Environment for git. Git reads no settings of the person who runs the tests. */
const gitEnv = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_AUTHOR_NAME: 'Fake',
  GIT_AUTHOR_EMAIL: 'fake@example.invalid',
  GIT_COMMITTER_NAME: 'Fake',
  GIT_COMMITTER_EMAIL: 'fake@example.invalid',
};

export interface FakeGitRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** Returns a path in quotes for `git fast-import`. Bytes that are not printable ASCII become octal numbers. */
function quoted(path: string): string {
  const bytes = Array.from(Buffer.from(path), (byte) => {
    const letter = String.fromCharCode(byte);
    return /[ !#-[\]-~]/.test(letter) ? letter : `\\${byte.toString(8).padStart(3, '0')}`;
  });
  return `"${bytes.join('')}"`;
}

/** Functions that write git objects and return their ids. */
export interface FakeObjects {
  file(content: string): Promise<string>;
  /** Writes a folder with the given entries. Each entry has a name, a kind and the id of its file or folder. */
  folder(entries: Iterable<readonly [name: string, kind: 'file' | 'folder', id: string]>): Promise<string>;
}

export interface FakeGitHost {
  readonly url: string;
  /** Value for RUNYARD_CODE_HOST_URL. */
  readonly template: string;
  readonly requests: readonly FakeGitRequest[];
  /**
   * Adds a commit to a repository, and creates the repository if it is missing. `files`: path → content, `links`: path → target,
   * `submodules`: path → commit. Returns the id of the new commit.
   */
  commit(
    owner: string,
    repo: string,
    files: Readonly<Record<string, string>>,
    links?: Readonly<Record<string, string>>,
    submodules?: Readonly<Record<string, string>>,
  ): Promise<string>;
  /**
   * Replaces the content of a repository. `makeTree` writes the objects of the new tree and returns its id. It can make a tree with
   * more files than a disk can hold, because a tree can contain one object many times.
   */
  commitTree(owner: string, repo: string, makeTree: (objects: FakeObjects) => Promise<string>): Promise<void>;
  /**
   * Replaces a branch, as a forced push does, by one commit without parents and with only these files. Returns the id of the commit.
   */
  replace(owner: string, repo: string, content: ReplacedContent): Promise<string>;
  /** Makes `alias` another name of a branch, as `git symbolic-ref` does. */
  alias(owner: string, repo: string, alias: string, branch: string): Promise<void>;
  /** Returns the id of the latest commit of a branch, or an empty text if the branch does not exist. */
  branchAt(owner: string, repo: string, branch: string): Promise<string>;
  /** Returns the author and the subject of the latest commit of a branch. All are empty if the branch does not exist. */
  lastCommit(owner: string, repo: string, branch: string): Promise<{ name: string; email: string; subject: string }>;
  /** Returns the content of a file on a branch. Default branch: `main`. */
  read(owner: string, repo: string, path: string, branch?: string): Promise<string>;
  /**
   * Answers later requests for the repository `from` (`owner/repo`) with 301 and the address of `to`: a repository of this host or an
   * absolute URL.
   */
  redirect(from: string, to: string): void;
  close(): Promise<void>;
}

/** Content of a branch. */
export interface ReplacedContent {
  /** Default: `main`. */
  readonly branch?: string;
  /** Path → content. */
  readonly files: Readonly<Record<string, string>>;
  /** Path → target. */
  readonly links?: Readonly<Record<string, string>>;
  /** Path → commit. */
  readonly submodules?: Readonly<Record<string, string>>;
}

export interface FakeGitHostOptions {
  /** Password that every request must send by basic authentication. Without it, the repositories are public. */
  readonly token?: string;
  /**
   * Returns whether a request with this password (basic authentication) may use the repository `owner/repo`. Is used instead of
   * `token`.
   */
  readonly accepts?: (repository: string, password: string | undefined) => boolean;
  /** False: the host ignores the filter of a partial clone and sends all files of a commit. */
  readonly leavesOutFiles?: boolean;
  /**
   * Answers requests to the API of the code host. Returns false for requests that it does not know; the host answers these as git
   * requests.
   */
  readonly api?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

/** Starts the fake on a free port of 127.0.0.1. Needs git. */
export async function startFakeGitHost(options: FakeGitHostOptions = {}): Promise<FakeGitHost> {
  const folder = await mkdtemp(join(tmpdir(), 'fake-git-host-'));
  const root = join(folder, 'repositories');
  const redirects = new Map<string, string>();
  const requests: FakeGitRequest[] = [];
  const git = async (cwd: string, ...args: string[]): Promise<string> =>
    (await run('git', args, { cwd, env: gitEnv })).stdout.trim();
  const feed = (cwd: string, input: string, ...args: string[]) => {
    const running = run('git', args, { cwd, env: gitEnv });
    // Ignore errors, because some commands end without reading their input.
    running.child.stdin?.on('error', () => {}).end(input);
    return running;
  };

  const authorized = (request: IncomingMessage): boolean => {
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const password = /:(.*)$/.exec(Buffer.from(basic, 'base64').toString('utf8'))?.[1];
    if (options.accepts)
      return options.accepts(/^\/([^/]+\/[^/]+?)\.git\//.exec(request.url ?? '')?.[1] ?? '', password);
    return options.token === undefined || password === options.token;
  };

  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '/', 'http://fake');
    requests.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers });
    if (options.api?.(request, response)) return;
    if (!authorized(request)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="fake"' }).end('no');
      return;
    }
    const [, name, rest] = /^\/([^/]+\/[^/]+?)\.git(\/.*)$/.exec(url.pathname) ?? [];
    const moved = redirects.get(name ?? '');
    if (moved !== undefined) {
      const base = moved.startsWith('http') ? moved : `/${moved}.git`;
      response.writeHead(301, { location: `${base}${rest}${url.search}` }).end();
      return;
    }
    backend(root, url, request, response);
  };

  /**
   * Creates a repository unless it exists, and returns its folder. Writes the few files that git needs, instead of a call of `git init
   * --bare`.
   */
  const init = async (owner: string, repo: string): Promise<string> => {
    const bare = join(root, owner, `${repo}.git`);
    if (existsSync(join(bare, 'HEAD'))) return bare;
    for (const name of ['objects', 'refs/heads']) await mkdir(join(bare, name), { recursive: true });
    const allowFilter = options.leavesOutFiles !== false;
    await writeFile(
      join(bare, 'config'),
      `[core]\nrepositoryformatversion = 0\nbare = true\n[http]\nreceivepack = true\n[receive]\nadvertisePushOptions = true\nautogc = false\n[uploadpack]\nallowFilter = ${allowFilter}\n`,
    );
    await writeFile(join(bare, 'HEAD'), 'ref: refs/heads/main\n');
    return bare;
  };

  const server = createServer(handle);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function publish(
    owner: string,
    repo: string,
    { branch = 'main', files, links = {}, submodules = {} }: ReplacedContent,
    isForced: boolean,
  ): Promise<string> {
    const bare = await init(owner, repo);
    const ref = `refs/heads/${branch}`;
    const parent = isForced || !existsSync(join(bare, ref)) ? [] : [`from ${ref}^0\n`];
    const put = (mode: string, path: string, content: string) =>
      `M ${mode} inline ${quoted(path)}\ndata ${Buffer.byteLength(content)}\n${content}\n`;
    // Run all steps in one process, because each process takes time to start.
    const { stdout } = await feed(
      bare,
      [
        `commit ${ref}\nmark :1\ncommitter Fake <fake@example.invalid> now\ndata 5\nfake\n\n`,
        ...parent,
        ...Object.entries(files).map(([path, content]) => put('100644', path, content)),
        ...Object.entries(links).map(([path, target]) => put('120000', path, target)),
        ...Object.entries(submodules).map(([path, commit]) => `M 160000 ${commit} ${quoted(path)}\n`),
        'get-mark :1\n',
      ].join(''),
      ...['-c', 'fastimport.unpackLimit=1', 'fast-import', '--quiet', '--force', '--date-format=now'],
    );
    return stdout.trim();
  }

  return {
    url,
    template: `${url}/{owner}/{repo}.git`,
    requests,
    commit: (owner, repo, files, links = {}, submodules = {}) =>
      publish(owner, repo, { files, links, submodules }, false),
    replace: (owner, repo, content) => publish(owner, repo, content, true),
    commitTree: async (owner, repo, makeTree) => {
      const bare = await init(owner, repo);
      const write = async (input: string, ...args: string[]) => (await feed(bare, input, ...args)).stdout.trim();
      const modes = { file: '100644 blob', folder: '040000 tree' } as const;
      const tree = await makeTree({
        file: (content) => write(content, 'hash-object', '-w', '--stdin'),
        folder: (entries) =>
          write(Array.from(entries, ([name, kind, id]) => `${modes[kind]} ${id}\t${name}\n`).join(''), 'mktree'),
      });
      await git(bare, 'update-ref', 'refs/heads/main', await write('', 'commit-tree', tree, '-m', 'fake'));
    },
    alias: (owner, repo, alias, branch) =>
      writeFile(join(root, owner, `${repo}.git`, 'refs/heads', alias), `ref: refs/heads/${branch}\n`),
    branchAt: (owner, repo, branch) =>
      git(join(root, owner, `${repo}.git`), 'for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`),
    lastCommit: async (owner, repo, branch) => {
      const format = '--format=%(authorname)%00%(authoremail:trim)%00%(contents:subject)';
      const text = await git(join(root, owner, `${repo}.git`), 'for-each-ref', format, `refs/heads/${branch}`);
      const [name = '', email = '', subject = ''] = text.split('\0');
      return { name, email, subject };
    },
    read: (owner, repo, path, branch = 'main') => git(join(root, owner, `${repo}.git`), 'show', `${branch}:${path}`),
    redirect: (from, to) => void redirects.set(from, to),
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}

/** Answers a request with `git http-backend`, a CGI program (RFC 3875). */
function backend(root: string, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const header = (name: string): string => request.headers[name]?.toString() ?? '';
  const child = spawn('git', ['http-backend'], {
    env: {
      ...gitEnv,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_PROTOCOL: header('git-protocol'),
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? 'GET',
      CONTENT_TYPE: header('content-type'),
      HTTP_CONTENT_ENCODING: header('content-encoding'),
      REMOTE_ADDR: '127.0.0.1',
      REMOTE_USER: 'fake',
      ...(request.headers['content-length'] === undefined ? {} : { CONTENT_LENGTH: header('content-length') }),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  response.once('close', () => child.kill());
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  let head = Buffer.alloc(0);
  const onHead = (chunk: Buffer): void => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    child.stdout.off('data', onHead);
    const headers: Record<string, string> = {};
    let status = 200;
    for (const line of head.subarray(0, end).toString('latin1').split('\r\n')) {
      const colon = line.indexOf(':');
      const name = line.slice(0, colon).toLowerCase();
      if (name === 'status') status = Number.parseInt(line.slice(colon + 1), 10);
      else headers[name] = line.slice(colon + 1).trim();
    }
    response.writeHead(status, headers);
    response.write(head.subarray(end + 4));
    child.stdout.pipe(response);
  };
  child.stdout.on('data', onHead);
  child.stdout.once('end', () => {
    if (!response.headersSent) response.writeHead(500);
    response.end();
  });
}
