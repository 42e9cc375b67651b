import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Transform } from 'node:stream';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { loadHttp } from '../../builtin-modules.ts';
import { listenOnLoopback } from '../../listen-on-loopback.ts';
import type { ServiceConnection } from '../../service/connection.ts';
import { type ModelRefusal, refusalOf, type TurnAnswers } from './refusals.ts';

/**
 * Paths of model endpoints: the name of the provider, then the path in the provider's API. The forwarder forwards no other path, so it
 * gives no access to the git and MCP endpoints of the gateway.
 */
const modelPath = /^\/(?:anthropic|openai|google|local)\/[A-Za-z0-9._:/-]+$/;

/**
 * Returns the path and query to which the service gets a request of a harness; undefined if the forwarder does not forward the request.
 * Google's clients may write the colon of a method as `%3A`.
 */
function gatewayTarget(requestTarget: string): string | undefined {
  const [path = '', ...query] = requestTarget.split('?');
  const plain = path.replace(/%3a/gi, ':');
  if (!modelPath.test(plain) || plain.split('/').some((segment) => segment === '.' || segment === '..'))
    return undefined;
  const parameters = new URLSearchParams(query.join('?'));
  // Google's clients may put the key into the query.
  parameters.delete('key');
  const text = parameters.toString();
  return `/api/v1/gateway${plain}${text === '' ? '' : `?${text}`}`;
}

/** Returns true if the path requests an answer of a model, which costs money. Returns false for paths that list models or count tokens. */
const asksModel = (target: string): boolean =>
  /\/(?:messages|responses|chat\/completions)(?:\?|$)|:(?:stream)?generateContent(?:\?|$)/i.test(target);

const host = /^[A-Za-z0-9._-]{1,253}(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]{2,45}\](?::\d{1,5})?$/;

/**
 * Returns the host and port of a proxy request in a form that is safe to show; undefined if the target is malformed.
 */
const shownHost = (wanted: string): string | undefined => (host.test(wanted) ? wanted.toLowerCase() : undefined);

export interface ForwarderOptions {
  readonly connection: ServiceConnection;
  /** Returns true for a refusal that the harness can ignore, for example of a model that it only uses for side tasks. */
  readonly isExpected: (refusal: ModelRefusal) => boolean;
  /** Called for each error answer for which `isExpected` is false. */
  readonly onRefused: (refusal: ModelRefusal) => void;
  /** Called once for each host that a program tries to reach with the forwarder as its proxy, but only for a limited number of hosts. */
  readonly onDenied: (host: string) => void;
}

/**
 * Gives programs in the sandbox access to the run's model. The forwarder adds the run token, so that no program has the token. Every
 * program of the run may use the forwarder. The service checks, counts and limits the requests of the forwarder in the same way as the
 * agent's own requests.
 */
export interface Forwarder {
  /** `http://127.0.0.1:PORT`; the first part of the path is the provider's name. */
  readonly url: string;
  /**
   * The key that each request must have, in the header or query parameter that the client of the provider uses. The key is valid only for
   * this forwarder.
   */
  readonly key: string;
  /** Starts the counts of a new turn. */
  beginTurn(): void;
  readonly answers: TurnAnswers;
  close(): void;
}

/**
 * Maximum number of concurrent requests of a sandbox. The forwarder answers further requests with 429, so that connections stay free
 * for the agent's own calls to the service.
 */
const maxRequests = 12;
const maxConnections = 64;
/** The same limit as in the gateway. */
const maxBodyBytes = 16 * 1024 * 1024;
/** Longer than the timeout of the gateway, which ends a request after 5 minutes without data. */
const idleTimeoutMs = 330_000;
const maxErrorBytes = 16 * 1024;
const maxDeniedHosts = 20;

const perHop = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te'];
const notUpwards = new Set([
  ...[...perHop, 'trailer', 'transfer-encoding', 'upgrade', 'host', 'expect', 'accept-encoding', 'cookie'],
  ...['authorization', 'x-api-key', 'x-goog-api-key', 'api-key'],
]);
/** A GET is forwarded without its body. If `content-length` were forwarded, the service would read the next request as this body. */
const notUpwardsOfGet = new Set([...notUpwards, 'content-length']);
const notDownwards = new Set([...perHop, 'trailer', 'transfer-encoding', 'upgrade', 'set-cookie']);

function without(headers: IncomingHttpHeaders, names: ReadonlySet<string>): Record<string, string> {
  const remaining = Object.entries(headers).filter(([name, value]) => typeof value === 'string' && !names.has(name));
  return Object.fromEntries(remaining) as Record<string, string>;
}

/** Returns the keys of a request from all headers and query parameters that the providers' clients use. */
function keysOf({ headers, url = '' }: IncomingMessage): string[] {
  const [, bearer] = /^Bearer (\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const query = new URLSearchParams(url.split('?').slice(1).join('?')).get('key');
  return [bearer, headers['x-api-key'], headers['x-goog-api-key'], query].filter((key) => typeof key === 'string');
}

/** Counts the answers of a turn, and keeps the last refusal of the model. */
function observeAnswers(isExpected: ForwarderOptions['isExpected'], onRefused: ForwarderOptions['onRefused']) {
  let succeeded = 0;
  let refused: ModelRefusal | undefined;

  function keepRefusal(status: number, answer: IncomingMessage): void {
    let body = '';
    answer.on('data', (chunk: Buffer) => {
      if (body.length < maxErrorBytes) body += chunk.toString('utf8');
    });
    answer.once('end', () => {
      const refusal = refusalOf(status, body);
      if (isExpected(refusal)) return;
      refused = refusal;
      onRefused(refusal);
    });
  }

  return {
    observe(target: string, status: number, answer: IncomingMessage): void {
      if (asksModel(target) && status < 300) succeeded += 1;
      if (status >= 400) keepRefusal(status, answer);
    },
    beginTurn(): void {
      succeeded = 0;
      refused = undefined;
    },
    read: () => ({ succeeded, refused }),
  };
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  response.writeHead(status, status === 429 ? { ...headers, 'retry-after': '1' } : headers);
  // The answer has the error members of all providers, so that the client of each provider shows the message.
  response.end(JSON.stringify({ type: 'error', error: { type: 'forwarder_error', code: status, message } }));
}

interface Refused {
  readonly status: number;
  readonly message: string;
}

/** Returns the path at the gateway for a request, or why it is refused. `proxied`: the host that the program wanted to reach. */
function admit(
  request: IncomingMessage,
  { isKey, ownHost, inFlight }: { isKey: (given: string) => boolean; ownHost: string; inFlight: number },
): { readonly target: string } | Refused | (Refused & { readonly proxied: string }) {
  const url = request.url ?? '';
  // A program that uses the forwarder as a proxy sends the whole URL.
  const [, proxied, path = ''] = /^http:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  if (proxied !== undefined && proxied !== ownHost) {
    const message = `this sandbox has no network: ${shownHost(proxied) ?? 'the address'} cannot be reached`;
    return { status: 403, message, proxied };
  }
  const target = gatewayTarget(proxied === undefined ? url : path);
  // Requests with an Origin header come from pages in a browser and are refused.
  if (target === undefined || !/^(GET|POST)$/.test(request.method ?? '') || request.headers.origin !== undefined)
    return { status: 404, message: "this address serves only the endpoints of the run's model" };
  if (!keysOf(request).some(isKey))
    return { status: 401, message: 'the request needs the key that the harness got from the agent' };
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes)
    return { status: 413, message: `the request is larger than ${maxBodyBytes / 1024 / 1024} MB` };
  if (inFlight < maxRequests) return { target };
  const message = `the run has ${maxRequests} requests to its model in flight; send it again later`;
  return { status: 429, message };
}

/** Starts the forwarder on a free port of loopback. While the forwarder listens, no other program can get this port. */
export async function startForwarder(options: ForwarderOptions): Promise<Forwarder> {
  const { connection, isExpected, onRefused, onDenied } = options;
  const key = `sk-runyard-${randomBytes(24).toString('base64url')}`;
  const expected = Buffer.from(key);
  let inFlight = 0;
  const answers = observeAnswers(isExpected, onRefused);
  const denied = new Set<string>();

  const isKey = (given: string): boolean => {
    const bytes = Buffer.from(given);
    return bytes.length === expected.length && timingSafeEqual(bytes, expected);
  };

  function deny(wanted: string): void {
    const name = shownHost(wanted);
    if (name === undefined || denied.has(name) || denied.size >= maxDeniedHosts) return;
    denied.add(name);
    onDenied(name);
  }

  async function pass(request: IncomingMessage, response: ServerResponse, target: string): Promise<void> {
    const disconnect = new AbortController();
    response.once('close', () => disconnect.abort());
    const answer = await connection.open({
      method: request.method === 'GET' ? 'GET' : 'POST',
      path: target,
      headers: without(request.headers, request.method === 'GET' ? notUpwardsOfGet : notUpwards),
      ...(request.method === 'GET' ? {} : { body: request.pipe(bounded(disconnect)) }),
      signal: disconnect.signal,
      idleTimeoutMs,
      lane: 'models',
    });
    const status = answer.statusCode ?? 502;
    answers.observe(target, status, answer);
    response.writeHead(status, without(answer.headers, notDownwards));
    response.flushHeaders();
    answer.on('error', () => cutOff(response));
    answer.pipe(response);
  }

  const server = loadHttp().createServer({ headersTimeout: 10_000, requestTimeout: 0 }, (request, response) => {
    const admitted = admit(request, { isKey, ownHost: ownHost(), inFlight });
    if ('proxied' in admitted) deny(admitted.proxied);
    if ('status' in admitted) return refuse(response, admitted.status, admitted.message);
    inFlight += 1;
    response.once('close', () => {
      inFlight -= 1;
    });
    pass(request, response, admitted.target).catch(() => {
      if (response.headersSent || response.destroyed) cutOff(response);
      else refuse(response, 502, 'the service cannot be reached');
    });
  });
  answerInTurn(server);
  server.maxConnections = maxConnections;
  // Some clients send every request through the proxy, even requests to the forwarder itself. So accept only the forwarder's own address.
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    const wanted = request.url ?? '';
    if (wanted === ownHost()) {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      server.emit('connection', socket);
      return;
    }
    deny(wanted);
    socket.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  const port = await listenOnLoopback(server);
  const ownHost = () => `127.0.0.1:${port}`;

  return {
    url: `http://127.0.0.1:${port}`,
    key,
    beginTurn: answers.beginTurn,
    get answers() {
      return answers.read();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Ends an incomplete answer with a reset of the connection, because some programs, such as Gemini CLI, repeat a request only after a reset.
 */
function cutOff(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}

/** Returns a stream that aborts the request if the body is larger than the gateway accepts. */
function bounded(gone: AbortController): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) gone.abort(new Error('the request is too large'));
      done(null, chunk);
    },
  });
}
