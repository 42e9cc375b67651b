import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { http } from '@runyard/system/node-http';
import { bodyFraming, forwardedHeaders, forwardedStatus, hasBody } from './forwarding.ts';
import { listenOnSocket, type Relay } from './socket-server.ts';

/** Paths that a sandbox may request: the agent's endpoints, and the models and repositories behind the gateway. */
const allowedPrefixes = ['/api/v1/harness-support/', '/api/v1/gateway/'] as const;

/** Characters of a URL (RFC 3986) that all servers interpret in the same way: no backslash, no `#`, no space, no control character. */
const plainTarget = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/%?[\]|"^`{}<>]*$/;

/** An encoded dot, slash, backslash, percent sign or control character. A server that decodes such a path twice would read a different path. */
const trickyEscape = /%(2e|2f|5c|25|7f|[01][0-9a-f])/i;

/**
 * Returns the target to request from the service, or `undefined` if the sandbox must not request it. `target` is from the request line;
 * `basePath` is the part of the service's URL before `/api/v1` (usually empty). Paths that need normalising are refused, so the service
 * sees exactly the checked bytes.
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

/** Most concurrent connections of one sandbox: a long poll, a few model streams and artifacts. Further connections are closed at once. */
const connectionsPerSandbox = 64;
const connectTimeoutMs = 5000;

/** Answers a request of a sandbox to the worker itself. Returns false for all other requests. */
export type OwnAnswers = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Connections to the service, shared by all sandboxes of a worker. */
export interface Upstream {
  request(target: string, message: IncomingMessage): ClientRequest;
  readonly basePath: string;
  close(): void;
}

/** Opens the connections to a service. `serviceRoot` has no `/api/v1`. */
export function openUpstream(serviceRoot: string): Upstream {
  const url = new URL(serviceRoot);
  const secure = url.protocol === 'https:';
  // Loads TLS only if it is needed, because a supervisor starts faster without it.
  const client = secure ? process.getBuiltinModule('node:https') : http;
  // An empty server name saves time. Otherwise Node would parse the host header with a large regular expression, even without TLS.
  const unnamed = secure ? {} : { servername: '' };
  const agent = new client.Agent({
    keepAlive: true,
    maxSockets: 1024,
    maxFreeSockets: 32,
    scheduling: 'lifo',
  });
  return {
    basePath: url.pathname.replace(/\/+$/, ''),
    request(target, message) {
      return client.request({
        agent,
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
    close: () => agent.destroy(),
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
  // Closes the connection. Otherwise the unread rest of the request would be read as the next request.
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
    if (socket.connecting)
      socket.once(socket instanceof Object && 'encrypted' in socket ? 'secureConnect' : 'connect', connected);
    else connected();
  });
  request.on('error', () => {
    connected();
    answer(response, 503, 'Resource unavailable', 'the service cannot be reached right now; try again');
  });
  request.on('response', (reply) => {
    // Every status is forwarded unchanged. Redirects are not followed on behalf of a sandbox.
    response.writeHead(forwardedStatus(reply), forwardedHeaders(reply));
    // If the answer has a length, its body follows at once, so one write sends headers and body. A stream may start with a long silence, so
    // its headers are sent first.
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
 * Listens on a Unix socket and forwards HTTP to the service and back, without buffering. Adds no credential: the run token decides what the
 * sandbox may do. `uid` is the user who may connect. `own` answers before the service is asked.
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
