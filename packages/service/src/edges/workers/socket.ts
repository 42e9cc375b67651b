/** Serves the WebSocket endpoint of workers: `GET /api/v1/selfhosted/worker/ws?worker_id=NAME` with a bearer key. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { maxWorkerConnections, maxWorkerPools } from '@runyard/contract/limits';
import { storable } from '@runyard/contract/wire/storable-json';
import { workerName } from '@runyard/contract/workers/worker-name';
import { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';
import { type WebSocket, WebSocketServer } from 'ws';
import { makePlaces } from '../../platform/bodies/places.ts';
import { count } from '../../platform/metrics/record.ts';
import { type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { RequestOrigin } from '../../platform/serving/served-route.ts';
import type { TrustedProxies } from '../../platform/serving/trusted-proxies.ts';
import { workOf } from '../../platform/store/database/shares.ts';
import { TooManyChanges } from '../../team/access/audit/record.ts';
import type { KeyInTeam, KeyWatch } from '../../team/access/keys/watch.ts';
import type { PoolCaller, PoolEntry } from '../../team/access/worker-pools/enter.ts';
import type { Hub } from './hub.ts';
import { costOfListed, type MessageBudget, makeMessageBudget, payerOf } from './message-budget.ts';
import { isNumbered } from './messages.ts';
import { paceReading } from './reading-pace.ts';
import { operatorNames, poolTeamOf, type WorkerPrincipal } from './rights.ts';

/** Path of the endpoint. */
export const workerSocketPath = '/api/v1/selfhosted/worker/ws';

/**
 * Returns whether a request asks for the worker's WebSocket. Any other upgrade is ignored and the request is answered normally, as RFC 9110
 * 7.8 allows: `curl --http2` and Java's client offer h2c with each request.
 */
export function isWorkerUpgrade(request: IncomingMessage): boolean {
  const isWebSocket = request.headers.upgrade?.trim().toLowerCase() === 'websocket';
  return isWebSocket && URL.parse(request.url ?? '/', 'http://service')?.pathname === workerSocketPath;
}

/** Returns the answer to a request without the header `Upgrade`, which a proxy has probably removed (RFC 9110, 7.8 and 15.5.22). */
export const noWebSocket = (): Refusal =>
  refuse('invalid_request', {
    status: 426,
    detail:
      'A worker opens a WebSocket here, and the request has no header Upgrade. A proxy in front of the service has to pass it on; nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade and proxy_set_header Connection "upgrade" (docs/proxy.md).',
    headers: { upgrade: 'websocket', connection: 'upgrade' },
  });

interface SocketOptions {
  readonly hub: Hub;
  readonly log: Logger;
  /** null: 401. */
  readonly authenticate: (authorization: string | undefined) => Promise<WorkerPrincipal | null>;
  readonly keyWatch: Pick<KeyWatch, 'watch'>;
  readonly trustedProxies: TrustedProxies;
  /** Decides whether a worker may connect to a pool of the team. Throws `TooManyChanges`. */
  readonly enterPool: (caller: PoolCaller, name: string) => Promise<PoolEntry>;
  readonly budget?: MessageBudget;
  /** Default: `maxWorkerConnections`. */
  readonly maxConnectionsOfTeam?: number;
}

/** Time for the other end to answer the close frame. After this time, the service cuts the connection. */
const closeWaitMs = 300;

/** The public worker pings every 30 s. If more than two pings are missing, the other end counts as lost. */
const silenceMs = 75_000;

/** Limits of a message and of its pieces. The largest message is a hello with `maxListedExecutions`. */
const bounds = { maxPayload: 512 * 1024, maxFragments: 256, maxBufferedChunks: 8192 } as const;

/** Accepts WebSocket upgrades of `server` on the workers' path. Returns a function that closes all connections. */
export function serveWorkerSockets(server: Server, options: SocketOptions): () => void {
  const sockets = new WebSocketServer({ noServer: true, ...bounds });
  const budget = options.budget ?? makeMessageBudget();
  const most = options.maxConnectionsOfTeam ?? maxWorkerConnections;
  /** Open connections of self-hosted workers, by the team of their key. */
  const placesOfTeam = makePlaces(most);
  /** Open connections of self-hosted workers, by the person or identity of their key, who has a share of the team's places. */
  const placesOfCaller = makePlaces(Math.ceil(most / 2));
  /** Open connections of the hosted pool, which have places of their own because the runs of all teams need them. */
  const placesOfHosted = makePlaces(most);
  const enter = ({ teamId, creator }: WorkerPrincipal, isHosted: boolean): (() => void) | undefined => {
    if (isHosted) return placesOfHosted.enter(teamId);
    const leaveCaller = placesOfCaller.enter(`${teamId} ${creator.uid}`);
    const leaveTeam = leaveCaller && placesOfTeam.enter(teamId);
    if (!leaveTeam) return void leaveCaller?.();
    return () => {
      leaveCaller();
      leaveTeam();
    };
  };

  const onUpgrade = (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    const url = URL.parse(request.url ?? '/', 'http://service');
    if (url?.pathname !== workerSocketPath)
      return refuseUpgrade(stream, 404, 'Not Found', 'There is no WebSocket here.');
    const workerId = url.searchParams.get('worker_id') ?? '';
    if (!workerName.test(workerId)) {
      return refuseUpgrade(stream, 400, 'Bad Request', 'worker_id must be 1 to 63 characters of [A-Za-z0-9._-].');
    }
    admit(request, stream, head, workerId).catch((error: unknown) => {
      if (error instanceof TooManyChanges) return refuseUpgrade(stream, 429, 'Too Many Requests', tooManyChanges);
      options.log.error({ err: error }, 'a worker could not be authenticated');
      refuseUpgrade(stream, 503, 'Service Unavailable', 'The service cannot check keys right now; try again.');
    });
  };

  async function admit(request: IncomingMessage, stream: Duplex, head: Buffer, workerId: string): Promise<void> {
    const origin = { address: options.trustedProxies.clientOf(request).address, requestId: randomUUID() };
    const principal = await options.authenticate(request.headers.authorization);
    if (!principal) {
      count('runyard_authentication_failures_total', { credential: 'worker' });
      return refuseUpgrade(stream, 401, 'Unauthorized', 'The key is missing, malformed, expired or revoked.');
    }
    const teamId = poolTeamOf(principal, workerId);
    if (teamId === 'not_allowed')
      return refuseUpgrade(stream, 403, 'Forbidden', principal.serves === 'hosted' ? onlyHosted : reservedName);
    if (stream.destroyed) return;
    const leave = enter(principal, teamId === null);
    if (!leave) return refuseUpgrade(stream, 429, 'Too Many Requests', tooManyConnections, ['Retry-After: 30']);
    stream.once('close', leave);
    if (teamId !== null) {
      const { keyId, creator } = principal;
      const { 'user-agent': userAgent = null } = request.headers;
      const entry = await options.enterPool({ teamId, keyId, creator, from: { ...origin, userAgent } }, workerId);
      if (entry.kind === 'too_many') return refuseUpgrade(stream, 409, 'Conflict', tooManyPools);
      if (entry.kind === 'not_allowed')
        return refuseUpgrade(stream, 403, 'Forbidden', notConnector(workerId, entry.owner, creator.uid));
    }
    if (stream.destroyed) return;
    const key = { ...principal, pool: teamId === null ? undefined : workerId };
    sockets.handleUpgrade(request, stream, head, (socket) =>
      serve(socket, { workerId, teamId, key, origin }, { ...options, budget }),
    );
  }

  server.on('upgrade', onUpgrade);
  return () => {
    server.off('upgrade', onUpgrade);
    for (const socket of sockets.clients) socket.close(1001, 'the service is stopping');
    sockets.close();
  };
}

const reservedName = `worker_id: names that begin with ${operatorNames} are reserved for the operator's keys. Choose another name, in RUNYARD_WORKER_NAME or the worker's own setting.`;

const onlyHosted = `worker_id: this key only connects workers of the hosted pool, whose names begin with ${operatorNames}. Set RUNYARD_WORKER_NAME to such a name, or use another key.`;

const notConnector = (name: string, owner: string, uid: string): string =>
  `worker_id: the pool ${name} belongs to ${owner}. Its owner or an administrator lets this key connect with: bin/runyard workers allow ${name} ${uid}`;

const tooManyPools = `worker_id: the team has ${maxWorkerPools} pools of workers, which is the maximum. Delete one with bin/runyard workers delete, or connect under the name of one.`;

const tooManyChanges = 'The team has reached its limit of changes a day, and a new pool is a change.';

const tooManyConnections =
  'The team, or the owner of this key, has reached its limit of worker connections to this service process. Stop workers that are not needed.';

/** Answers without a WebSocket, and closes the connection within `closeWaitMs`, even if the client keeps its side open. */
function refuseUpgrade(
  stream: Duplex,
  status: number,
  title: string,
  detail: string,
  headers: readonly string[] = [],
): void {
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    ...headers,
    'Content-Type: application/problem+json',
    'Connection: close',
  ];
  const body = JSON.stringify({ title, status, detail });
  stream.end(`${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  stream.resume();
  const late = setTimeout(() => stream.destroy(), closeWaitMs);
  stream.once('close', () => clearTimeout(late));
}

function serve(
  socket: WebSocket,
  owner: {
    workerId: string;
    teamId: string | null;
    key: KeyInTeam & Pick<WorkerPrincipal, 'creator'>;
    origin: Omit<RequestOrigin, 'userAgent'>;
  },
  { hub, log, keyWatch, budget }: SocketOptions & { readonly budget: MessageBudget },
): void {
  const { workerId, teamId, key, origin } = owner;
  const { keyId } = key;
  const payer = payerOf(key, teamId);
  const share = { team: key.teamId, id: `worker of ${payer.caller}` };
  let isKeyEnded = false;
  /** An acknowledgement covers all earlier messages, so no numbered message may take effect after a failed message. */
  let hasFailed = false;
  /** Closes the connection within `closeWaitMs`, even if the other end does nothing. */
  const close = (code: number, reason: string) => {
    socket.close(code, reason);
    setTimeout(() => socket.terminate(), closeWaitMs).unref();
  };
  const unwatchKey = keyWatch.watch(key, 'worker', () => {
    isKeyEnded = true;
    log.info(
      { worker: workerId },
      'the key of a worker was deleted or has expired, or its person may not run workers any more',
    );
    close(1008, 'the key has ended, or its person may not run workers any more');
  });
  const pace = paceReading(socket);
  let unread = 0;
  const send = (message: object) => {
    if (socket.readyState === socket.OPEN) pace.send(JSON.stringify(message));
  };
  const end = () => close(1012, 'connect again');
  const opened = hub.connect({ workerId, teamId, keyId, send, end });
  // Messages take effect one after the other, in the order in which they arrived.
  let chain: Promise<unknown> = opened.catch((error: unknown) => {
    log.error({ err: error, worker: workerId }, 'registering the connection of a worker failed');
    close(1011, 'try again');
  });
  const then = (bytes: number, work: (connection: Awaited<typeof opened>) => unknown) => {
    chain = chain
      .then(async () => await work(await opened))
      .catch((error: unknown) => {
        // Our worker repeats messages that were not acknowledged; a message of the public worker is lost.
        log.error({ err: error, worker: workerId }, 'a message of a worker failed');
        hasFailed = true;
        close(1011, 'try again');
      });
    pace.work(chain, bytes);
  };
  let silence = setTimeout(() => socket.terminate(), silenceMs);
  const alive = () => {
    clearTimeout(silence);
    silence = setTimeout(() => socket.terminate(), silenceMs);
    opened.then((connection) => connection.alive()).catch(() => undefined);
  };
  socket.on('ping', alive);
  socket.on('message', (data, isBinary) => {
    alive();
    const text = isBinary ? '' : String(data);
    then(text.length, async (connection) => {
      await budget.spend(payer, text.length);
      const message = parse(text);
      if (message === null) {
        // Only the first such frame writes a log line, because a flood of these frames would fill the disk of the log.
        unread += 1;
        if (unread === 1) log.warn({ worker: workerId }, 'a worker sent a frame that is not a message of the protocol');
        return;
      }
      if (message.type === 'worker_hello') await budget.spend(payer, message.data.executions.length * costOfListed);
      if (isKeyEnded || (hasFailed && isNumbered(message))) return;
      await workOf(share, () => connection.message(message));
    });
  });
  socket.on('error', (error) => log.warn({ err: error, worker: workerId }, 'connection of a worker failed'));
  socket.on('close', () => {
    clearTimeout(silence);
    unwatchKey();
    log.info({ worker: workerId, ...(unread > 0 ? { unread_frames: unread } : {}) }, 'worker disconnected');
    then(0, (connection) => connection.closed());
  });
  const connected = { worker: workerId, client: origin.address, request_id: origin.requestId, hosted: teamId === null };
  log.info(connected, 'worker connected');
}

/**
 * Reads a message. Replaces characters that PostgreSQL cannot store in all texts: a worker of another kind forwards the output of its
 * programs unchanged, and does not repeat a message that failed.
 */
function parse(text: string): WorkerMessage | null {
  try {
    const parsed = WorkerMessage.safeParse(storable(JSON.parse(text)));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
