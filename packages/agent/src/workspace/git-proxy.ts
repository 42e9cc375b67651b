import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { waitingHeader } from '@runyard/contract/agent/headers';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { readBody, type ServiceConnection } from '../service/connection.ts';

export interface GitProxyOptions {
  readonly connection: ServiceConnection;
  readonly repositories: AgentTask['repositories'];
  /** Closes the proxy when it aborts. */
  readonly signal: AbortSignal;
}

/**
 * Matches the end of the path in a request of git (gitprotocol-http) or Git LFS (docs/api of git-lfs). The proxy forwards no other path.
 * With `..` in the path, a request with the run token could reach another endpoint, because a server in front of the service may normalise
 * the path.
 */
const requests: Readonly<Record<string, RegExp>> = {
  GET: /^\/info\/(?:refs\?service=git-(?:upload|receive)-pack|lfs\/objects\/[0-9a-f]{64}\?size=\d{1,15})$/,
  POST: /^\/(?:git-(?:upload|receive)-pack|info\/lfs\/objects\/batch)$/,
  PUT: /^\/info\/lfs\/objects\/[0-9a-f]{64}\?size=\d{1,15}$/,
};
/** Maximum size of the answer to a batch request of Git LFS, which is read whole. */
const maxBatchBytes = 1024 * 1024;
/**
 * A code host may pack a large repository for minutes before it answers. The time is longer than the timeout of the gateway, so that the
 * gateway reports a timeout.
 */
const idleTimeoutMs = 660_000;
/** Git opens one or two connections for a command. */
const maxConnections = 64;
const getHeaders = ['accept', 'user-agent', 'git-protocol'];
const postHeaders = [...getHeaders, 'content-type', 'content-encoding', 'content-length'];
const answerHeaders = ['content-type', 'content-length', 'content-encoding', 'cache-control'];

/**
 * Starts a proxy on loopback through which git in the sandbox reaches only the repositories of the run. The proxy adds the run token, so
 * no program of the sandbox needs the token. The gateway adds the credential of the code host. Returns variables that make git use the
 * proxy, while `.git/config` keeps the public URLs. The URL of the proxy contains a secret that is only in these variables. So other
 * users of the machine cannot use the proxy.
 */
export async function startGitProxy(options: GitProxyOptions): Promise<Record<string, string>> {
  const { connection, repositories, signal } = options;
  const secret = `/${randomBytes(16).toString('hex')}`;
  const open = (request: IncomingMessage, response: ServerResponse) =>
    passOn(request, response, { connection, repositories, secret, base: url }).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { connection: 'close' }).end('The service cannot be reached.\n');
    });
  const server = createServer((request, response) => void open(request, response));
  answerInTurn(server);
  server.maxConnections = maxConnections;
  const url = await new Promise<string>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}${secret}`);
    });
  });
  server.unref();
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  if (signal.aborted) close();
  else signal.addEventListener('abort', close, { once: true });
  return gitVariables(url, repositories);
}

const pick = (headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]] as const] : [])),
  );

async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  of: {
    readonly connection: ServiceConnection;
    readonly repositories: AgentTask['repositories'];
    readonly secret: string;
    /** Address of this proxy, with the secret. */
    readonly base: string;
  },
): Promise<void> {
  const { method, url = '' } = request;
  const path = url.startsWith(`${of.secret}/`) ? url.slice(of.secret.length) : '';
  const isKnown = method === 'GET' || method === 'POST' || method === 'PUT';
  const isOfRun = of.repositories.some(
    ({ gateway_path }) =>
      isKnown && path.startsWith(gateway_path) && requests[method]?.test(path.slice(gateway_path.length)) === true,
  );
  if (!isOfRun || !isKnown) {
    response.writeHead(404, { connection: 'close' }).end('Only the repositories of the run are here.\n');
    return;
  }
  const disconnect = new AbortController();
  response.once('close', () => disconnect.abort());
  const isPush = method === 'POST' && path.endsWith('/git-receive-pack');
  const body = isPush ? await replayable(request) : request;
  const send = () =>
    of.connection.open({
      method,
      path,
      // A GET is forwarded without its body. If `content-length` were forwarded, the service would read the agent's next request as this
      // body.
      headers: pick(request.headers, method === 'GET' ? getHeaders : postHeaders),
      ...(method === 'GET' ? {} : { body: body instanceof Buffer ? Readable.from([body]) : body }),
      signal: disconnect.signal,
      idleTimeoutMs,
    });
  let answer = await send();
  // The gateway answers a held push before servers in between end the request. So the push is sent again, until a person has decided.
  while (body instanceof Buffer && answer.headers[waitingHeader] !== undefined && !disconnect.signal.aborted) {
    answer.resume();
    answer = await send();
  }
  answer.once('error', () => response.destroy());
  if (path.endsWith('/lfs/objects/batch') && answer.statusCode === 200) {
    const text = withAddresses(await readBody(answer, maxBatchBytes), of.base);
    response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' }).end(text);
    return;
  }
  response.writeHead(answer.statusCode ?? 502, pick(answer.headers, answerHeaders));
  answer.pipe(response);
}

/** Completes the addresses of objects in the answer to a batch request. The gateway names only their paths. */
function withAddresses(answer: Buffer, base: string): string {
  return JSON.stringify(JSON.parse(answer.toString('utf8')), (name, value: unknown) =>
    name === 'href' ? `${base}${String(value)}` : value,
  );
}

/** Largest push that is kept in memory, so that it can be sent again after a person has approved it. */
const maxReplayedBytes = 8 * 1024 * 1024;

/** Reads a push into memory. Returns a stream with the whole push if it is too large for that. */
async function replayable(request: IncomingMessage): Promise<Buffer | Readable> {
  const chunks = request[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const parts: Buffer[] = [];
  let size = 0;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    parts.push(next.value);
    size += next.value.length;
    if (size > maxReplayedBytes) return Readable.from(withRest(parts, chunks), { objectMode: false });
  }
  return Buffer.concat(parts);
}

async function* withRest(parts: Buffer[], rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* parts.splice(0);
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

function gitVariables(url: string, repositories: AgentTask['repositories']): Record<string, string> {
  // Git compares only sizes and times of changes, so that it does not read all files again in a copy of a prepared workspace, where the
  // files have other inodes and owners.
  const compare: [string, string] = ['core.checkStat', 'minimal'];
  const urls = repositories.flatMap((repository): [string, string][] => {
    const key = `url.${url}${repository.gateway_path}.insteadOf`;
    const { hostname, pathname } = new URL(publicUrl(repository));
    return [
      [key, publicUrl(repository)],
      [key, `git@${hostname}:${pathname.slice(1)}`],
      [key, `ssh://git@${hostname}${pathname}`],
    ];
  });
  const config = [...urls, compare];
  return {
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: String(config.length),
    ...Object.fromEntries(
      config.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** Returns the address of a repository on its code host. The clone of the repository has this address as its origin. */
export const publicUrl = ({
  owner,
  repo,
  url,
}: Pick<AgentTask['repositories'][number], 'owner' | 'repo' | 'url'>): string =>
  url ?? `https://github.com/${owner}/${repo}.git`;
