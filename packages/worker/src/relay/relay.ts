import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { http } from '@runyard/system/node-http';
import { openAgents, whenOpen } from '@runyard/system/outgoing/outgoing';
import { bodyFraming, forwardedHeaders, forwardedStatus, hasBody } from './forwarding.ts';
import { listenOnSocket, type Relay } from './socket-server.ts';

/** Paths that a sandbox may request: the endpoints for agents, and the gateway of the service to models and repositories. */
const allowedPrefixes = ['/api/v1/harness-support/', '/api/v1/gateway/'] as const;

/** Characters of a URL (RFC 3986) that all servers interpret in the same way: no backslash, no `#`, no space, no control character. */
const plainTarget = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/%?[\]|"^`{}<>]*$/;

/**
 * Matches an encoded dot, slash, backslash, percent sign or control character. A server that decodes such a path twice would read a
 * different path.
 */
const trickyEscape = /%(2e|2f|5c|25|7f|[01][0-9a-f])/i;

/**
 * Returns the target to request from the service, or `undefined` if the sandbox must not request it. `target` is from the request line;
 * `basePath` is the part of the service's URL before `/api/v1` (usually empty). Paths that a server might normalise, such as `a/../b`,
 * are refused, so that the service reads exactly the path that was checked.
 */
export function allowedTarget(target: string, basePath = ''): string | undefined {
  if (target.length > 8192 || !plainTarget.test(target)) return undefined;
  const [whole = ''] = target.split('?', 1);
  const path = basePath !== '' && whole.startsWith(`${basePath}/`) ? whole.slice(basePath.length) : whole;
  if (!allowedPrefixes.some((prefix) => path.startsWith(prefix))) return undefined;
  if (trickyEscape.test(path) || /%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const segments = path.split('/').slice(1);
  const last = segments.length - 1;
  // Servers that know path parameters read `..;x` as `..`.
  const dots = (segment: string): boolean => /^\.{1,2}(;|$)/.test(segment);
  if (segments.some((segment, index) => dots(segment) || (segment === '' && index < last))) return undefined;
  return `${basePath}${path}${target.slice(whole.length)}`;
}

/**
 * Maximum number of concurrent connections of one sandbox. An agent needs only one for a long poll and a few for model streams and
 * artifacts. Further connections are closed at once.
 */
const connectionsPerSandbox = 64;
const connectTimeoutMs = 5000;

/** If a request is for the worker itself and not for the service, answers the request and returns true. Otherwise returns false. */
export type OwnAnswers = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Connections to the service, shared by all sandboxes of a worker. */
export interface Upstream {
  request(target: string, message: IncomingMessage): ClientRequest;
  readonly basePath: string;
  close(): void;
}

/** Makes the connections to a service. `serviceRoot` is the URL of the service without `/api/v1`. */
export function openUpstream(serviceRoot: string): Upstream {
  const url = new URL(serviceRoot);
  const secure = url.protocol === 'https:';
  // Loads TLS only if it is needed, because a supervisor starts faster without it.
  const client = secure ? process.getBuiltinModule('node:https') : http;
  // An empty server name saves time. Otherwise Node would parse the host header with a large regular expression, even without TLS.
  const unnamed = secure ? {} : { servername: '' };
  const agents = openAgents({ keepAlive: true, maxSockets: 1024, maxFreeSockets: 32, scheduling: 'lifo' });
  return {
    basePath: url.pathname.replace(/\/+$/, ''),
    request(target, message) {
      return client.request({
        agent: agents.of(url),
        protocol: url.protocol,
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port || (secure ? 443 : 80),
        method: message.method ?? 'GET',
        path: target,
        headers: { ...forwardedHeaders(message), ...bodyFraming(message), host: url.host },
        setHost: false,
        ...unnamed,
      });
    },
    close: agents.close,
  };
}

function answer(response: ServerResponse, status: number, title: string, detail: string): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({
    type: 'about:blank',
    title,
    status,
    detail,
    error: `${title} (${detail})`,
    retryable: status === 503,
  });
  const retry = status === 503 ? { 'retry-after': '1' } : {};
  // Closes the connection, because the server would read the unread rest of the request as the next request.
  response.writeHead(status, { 'content-type': 'application/problem+json', connection: 'close', ...retry });
  response.end(body);
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

function relay(upstream: Upstream, message: IncomingMessage, response: ServerResponse): void {
  const target = allowedTarget(message.url ?? '', upstream.basePath);
  if (target === undefined) {
    answer(
      response,
      403,
      'Not authorized',
      'a sandbox reaches only the agent endpoints and the gateway of the service',
    );
    return;
  }
  if (!methods.has(message.method ?? '')) {
    answer(response, 405, 'Invalid request', 'the method is not supported');
    return;
  }
  const request = upstream.request(target, message);
  const unreachable = setTimeout(() => request.destroy(new Error('no connection in time')), connectTimeoutMs);
  const connected = (): void => clearTimeout(unreachable);
  request.on('socket', (socket) => {
    socket.setNoDelay(true);
    whenOpen(socket, connected);
  });
  request.on('error', () => {
    connected();
    answer(response, 503, 'Resource unavailable', 'the service cannot be reached right now; try again');
  });
  request.on('response', (reply) => {
    // Redirects are forwarded and not followed, because the target of a redirect is not checked.
    response.writeHead(forwardedStatus(reply), forwardedHeaders(reply));
    // If the answer has a length, its body follows at once, so one write sends headers and body together. An answer without a length
    // may be a stream whose first data comes much later, so its headers are sent at once.
    if (reply.headers['content-length'] === undefined) response.flushHeaders();
    reply.pipe(response);
    reply.on('error', () => response.destroy());
    reply.on('aborted', () => response.destroy());
  });
  response.on('close', () => {
    if (!response.writableFinished) request.destroy();
  });
  message.on('error', () => request.destroy());
  if (hasBody(message)) message.pipe(request);
  else request.end();
}

/**
 * Listens on a Unix socket, forwards HTTP requests to the service, and forwards the answers without buffering. Adds no credential,
 * because the requests have a run token, which decides what the sandbox may do. Only the user `uid` may connect. The functions in
 * `own` get each request first; if none of them answers it, the request is forwarded.
 */
export async function openRelay(
  socketPath: string,
  upstream: Upstream,
  uid?: number,
  own: readonly OwnAnswers[] = [],
): Promise<Relay> {
  const server = http.createServer({
    maxHeaderSize: 32 * 1024,
    requestTimeout: 0,
    headersTimeout: 10_000,
    keepAliveTimeout: 75_000,
    noDelay: true,
  });
  server.maxConnections = connectionsPerSandbox;
  server.on('request', (message, response) => {
    if (!own.some((answer) => answer(message, response))) relay(upstream, message, response);
  });
  server.on('connect', (_message, socket) => socket.destroy());
  server.on('clientError', (_error, socket) => socket.destroy());
  const opened = await listenOnSocket(server, socketPath, uid);
  server.unref();
  return opened;
}
