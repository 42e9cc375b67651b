import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { loadHttp } from '../builtin-modules.ts';
import type { WholeAnswer } from './answer-reader.ts';
import { AnswerTooLarge } from './errors.ts';
import { relayCalls } from './relay-calls.ts';

export interface ConnectionOptions {
  /** URL of the service, without `/api/v1`. */
  serverRoot: string;
  /** Unix socket of the worker's relay. Absent: the agent connects to the server root over TCP. */
  relaySocket?: string | undefined;
  /** Run token; sent with every request. */
  token: string;
}

/**
 * The kind of a request. Each kind has separate connections, so that long requests do not delay other requests. `reports`: events, the
 * inbox and the ends of turns, each with at most one request at a time. `waits`: calls of MCP servers, and calls that the service
 * answers only when another run changes. `models`: model requests of a harness in a separate process. `work`: all other calls,
 * including files and the models of the built-in harness.
 */
export type Lane = 'reports' | 'work' | 'waits' | 'models';

/** Maximum number of connections of each lane. The sum is below 64, because the worker's relay allows 64 connections for each sandbox. */
const socketsOf: Readonly<Record<Lane, number>> = { reports: 4, work: 16, waits: 24, models: 12 };

export interface ServiceRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Path below the server root, with its query. */
  path: string;
  headers?: Record<string, string>;
  /** The body. If it is a stream, the caller must set `content-length` in `headers`. */
  body?: string | Uint8Array | Readable | undefined;
  signal?: AbortSignal | undefined;
  /** The request fails if the service sends nothing for this time. */
  idleTimeoutMs: number;
  /** Default: `work`. */
  lane?: Lane | undefined;
}

/** Sends HTTP requests to the service over reused connections. Uses the relay's socket if there is one. */
export interface ServiceConnection {
  readonly serverRoot: string;
  readonly token: string;
  readonly relaySocket: string | undefined;
  /** Resolves with an answer whose body the caller must read. Rejects on connection errors, timeouts and abort. */
  open(request: ServiceRequest): Promise<IncomingMessage>;
  /**
   * Sends a request in the same way as `open`, and also reads the body of the answer. Rejects with `AnswerTooLarge` if this body has more
   * than `maxBytes(status)` bytes.
   */
  call(request: ServiceRequest, maxBytes: (status: number) => number): Promise<WholeAnswer>;
  close(): void;
}

class RequestStalled extends Error {
  override name = 'RequestStalled';
}

export function connectToService(options: ConnectionOptions): ServiceConnection {
  const root = new URL(options.serverRoot);
  const basePath = root.pathname.replace(/\/+$/, '');
  const secure = root.protocol === 'https:' && options.relaySocket === undefined;
  // The client with the HTTP module. It is loaded on first use, because a short run over the relay does not need it.
  let loaded: ReturnType<typeof loadClient> | undefined;
  const calls = options.relaySocket ? relayCalls(options.relaySocket) : undefined;
  // The empty server name saves 5 ms. Without `servername`, Node takes the name from the host header, and compiles a large regular
  // expression for this.
  const target = options.relaySocket
    ? { socketPath: options.relaySocket, servername: '' }
    : { hostname: root.hostname.replace(/^\[|\]$/g, ''), port: root.port || (secure ? 443 : 80) };

  const headersOf = ({ headers }: ServiceRequest) => ({
    host: root.host,
    authorization: `Bearer ${options.token}`,
    ...headers,
  });

  const open: ServiceConnection['open'] = (request) =>
    new Promise((resolve, reject) => {
      loaded ??= loadClient(secure);
      const { client, agents } = loaded;
      const outgoing = client.request({
        ...target,
        agent: agents[request.lane ?? 'work'],
        method: request.method,
        path: basePath + request.path,
        headers: { ...bodyHeaders(request.body), ...headersOf(request) },
        ...(request.signal ? { signal: request.signal } : {}),
      });
      outgoing.setTimeout(request.idleTimeoutMs, () =>
        outgoing.destroy(new RequestStalled(`no answer for ${request.idleTimeoutMs} ms`)),
      );
      outgoing.on('error', reject);
      outgoing.on('response', resolve);
      send(outgoing, request.body);
    });

  return {
    serverRoot: options.serverRoot.replace(/\/+$/, ''),
    token: options.token,
    relaySocket: options.relaySocket,
    open,
    async call(request, maxBytes) {
      const { method, path, body, signal, idleTimeoutMs, lane } = request;
      if (calls !== undefined && lane === 'reports' && (body === undefined || typeof body === 'string'))
        return await calls.call({
          method,
          path: basePath + path,
          headers: headersOf(request),
          body,
          signal,
          idleTimeoutMs,
          maxBytes,
        });
      const answer = await open(request);
      const { statusCode: status = 0, headers } = answer;
      return { status, retryAfter: headers['retry-after'], body: await readBody(answer, maxBytes(status)) };
    },
    close: () => {
      calls?.close();
      for (const agent of Object.values(loaded?.agents ?? {})) agent.destroy();
    },
  };
}

/** Loads the HTTP module, and creates the connection pool of each lane. */
function loadClient(secure: boolean) {
  const client = secure ? process.getBuiltinModule('node:https') : loadHttp();
  const agentOf = (lane: Lane) =>
    new client.Agent({ keepAlive: true, keepAliveMsecs: 15_000, maxSockets: socketsOf[lane] });
  const agents = {
    reports: agentOf('reports'),
    work: agentOf('work'),
    waits: agentOf('waits'),
    models: agentOf('models'),
  };
  return { client, agents };
}

function bodyHeaders(body: ServiceRequest['body']): Record<string, string> {
  return typeof body === 'string' || body instanceof Uint8Array
    ? { 'content-length': String(Buffer.byteLength(body)) }
    : {};
}

function send(outgoing: ClientRequest, body: ServiceRequest['body']): void {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    outgoing.end(body);
    return;
  }
  body.on('error', (error) => outgoing.destroy(error));
  outgoing.on('close', () => body.destroy());
  body.pipe(outgoing);
}

/** Reads the body of an answer. Throws `AnswerTooLarge` if the body has more than `maxBytes`. */
export async function readBody(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  if (!answer.complete) throw new Error('the answer was cut off');
  return Buffer.concat(chunks);
}
