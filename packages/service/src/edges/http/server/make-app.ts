import { leastBodyMb } from '@runyard/contract/limits';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Logger } from 'pino';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { observe } from '../../../platform/metrics/record.ts';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { trustProxies } from '../../../platform/serving/trusted-proxies.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { sealHeaders } from '../../../team/mcp/literal-headers.ts';
import { githubHostOf } from '../../../triggers/github/hosts.ts';
import { isWorkerUpgrade } from '../../workers/socket.ts';
import type { RefuseWhileFull, SealConfig } from './add-route.ts';
import { type Authorizer, clientOf } from './authorize.ts';
import { closeConnectionsWhileClosing } from './closing.ts';
import { connectionLimits, openFilesLimit } from './connection-limits.ts';
import { watchDeliveries } from './delivery.ts';
import type { ServiceDeps } from './deps.ts';
import { isForFiles, refuseOnFilesOrigin } from './files-origin.ts';
import { parseJsonBodies } from './json-body.ts';
import { answerUnreadable, refusalOf, sendRefusal, unavailable } from './problem.ts';
import { shareRequests } from './request-shares.ts';
import { shownPath, withoutQuery } from './shown-path.ts';
import { endSlowBodies } from './slow-body.ts';
import { requestId, traceOf } from './trace.ts';
import { endConnectionsOfUnreadBodies } from './unread-body.ts';

/** Time limits for a client, milliseconds. */
export interface ClientTimeouts {
  /** Time for the headers of a request. */
  readonly headersMs: number;
  /** Time in which a body ends, or `leastBytes` of it arrive. A larger body gets this time again and again. */
  readonly requestMs: number;
  /** Time between two checks of `headersMs`. */
  readonly checkEveryMs: number;
  /** Time in which the client may send the remaining bytes of a refused body. Default: 5,000. */
  readonly drainMs?: number;
  /** Default: 64 MB, so all of a JSON body must arrive within `requestMs`. */
  readonly leastBytes?: number;
}

export const defaultTimeouts: ClientTimeouts = { headersMs: 15_000, requestMs: 300_000, checkEveryMs: 2_000 };

/**
 * Bytes of an unread body that Node stores. A request may wait for memory before its body is read, and a body in pieces of one byte uses
 * about a hundred times its size. With Node's default of 64 KB, each such body would use 8 MB.
 */
const unreadBytes = 8 * 1024;

/** Limits of a port for senders only, whose bodies have at most 256 KB. */
export const ingressTimeouts: ClientTimeouts = { headersMs: 10_000, requestMs: 30_000, checkEveryMs: 2_000 };

/** Sets the headers of every answer. */
function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
}

/** The compilers of fastify's own schemas, which no route has. Without these compilers, fastify loads ajv and fast-json-stringify. */
const noCompiler = () => () => {
  throw new Error('the schema of a route belongs into the contract, not into fastify');
};

/** If a browser requests an address that does not exist, answers with a page. For other clients, sends nothing and returns false. */
type ShowNotFound = (request: FastifyRequest, reply: FastifyReply) => boolean;

/** The parts that the server uses. Routes get their parts separately. */
type AppParts = Pick<ServiceDeps, 'db' | 'settings' | 'log' | 'metrics' | 'baseUrl' | 'freeSpace' | 'configSeal'>;

/** Makes the server, with its limits and without routes. */
function makeServer(deps: AppParts, timeouts: ClientTimeouts, showNotFound: ShowNotFound): FastifyInstance {
  const app: FastifyInstance = Fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    childLoggerFactory: (logger, bindings, options) => logger.child({ request_id: bindings.reqId }, options),
    // Node would limit the time of the whole request, so it would end each large upload over a slow line. `endSlowBodies` limits bodies.
    requestTimeout: 0,
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      highWaterMark: unreadBytes,
      // By default, Node answers a request without Host with an empty 400; `refuseByHeaders` sends a problem document instead.
      requireHostHeader: false,
      // Without a listener Node would destroy the socket of an upgrade.
      shouldUpgradeCallback: (request) => app.server.listenerCount('upgrade') > 0 && isWorkerUpgrade(request),
    },
    return503OnClosing: false,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: false },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, deps.baseUrl()),
    // fastify runs no hook before this handler, so the handler sets the headers itself.
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      const refusal = refusalOf(error) ?? refuse('invalid_request', { detail: error.message });
      const isPage = refusal.code === 'resource_not_found' && !isForFiles(request, deps.settings.RUNYARD_FILES_URL);
      if (isPage && showNotFound(request, reply)) return;
      sendRefusal(refusal, request, reply, deps.baseUrl());
    },
  });
  answerInTurn(app.server);
  endSlowBodies(app.server, timeouts.requestMs, timeouts.leastBytes ?? leastBodyMb * 1024 * 1024);
  // A request with an expectation other than 100-continue is handled like any other: `refuseByHeaders` answers 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  return app;
}

/** Answers exceptions with problem documents, and logs unexpected exceptions. */
function answerExceptions(app: FastifyInstance, baseUrl: () => string): void {
  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error);
    const entry = { err: error, trace_id: traceOf(request).traceId };
    if (!refusal) request.log.error(entry, 'request failed');
    else if (error instanceof StoreUnavailable) request.log.warn(entry, 'database or disk is not available');
    return sendRefusal(refusal ?? refuse('internal_error'), request, reply, baseUrl());
  });
}

interface AppOptions {
  readonly authorizer: Authorizer;
  readonly bodies: BodyBudget;
  readonly timeouts: ClientTimeouts;
  /** Absent: browsers get problem documents too. */
  readonly showNotFound?: ShowNotFound;
}

/**
 * Makes an app to which routes can be added: it checks headers, reads JSON bodies within the budget `bodies`, logs requests,
 * and answers refusals, exceptions and unknown paths with problem documents.
 */
export function makeApp(
  deps: AppParts,
  { authorizer, bodies, timeouts, showNotFound = () => false }: AppOptions,
): FastifyInstance {
  const app = makeServer(deps, timeouts, showNotFound);
  const refuseWhileFull: RefuseWhileFull = async () => {
    const problem = deps.freeSpace.problem();
    if (problem !== null)
      throw unavailable('disk', `Nothing new is stored: ${problem}. Free space there. Reading works.`);
  };
  const { RUNYARD_FILES_URL: filesUrl } = deps.settings;
  app.decorate('trustedProxies', trustProxies(deps.settings.RUNYARD_TRUSTED_PROXIES));
  app.decorate('filesOrigin', filesUrl && new URL(filesUrl).origin);
  app.decorate('githubOrigin', githubHostOf(deps.settings)?.web);
  app.decorate('authorizer', authorizer);
  app.decorate('refuseWhileFull', refuseWhileFull);
  const sealConfig: SealConfig = async (teamId, body) =>
    teamId === undefined ? body : await sealHeaders(deps.configSeal, teamId, body);
  app.decorate('sealConfig', sealConfig);

  app.decorate('watchDelivery', watchDeliveries(app, deps));

  shareRequests(app, connectionLimits(openFilesLimit()).most);
  endConnectionsOfUnreadBodies(app, timeouts.drainMs ?? 5_000);
  const methods = collectMethods(app);
  app.addHook('onRequest', async (request, reply) => {
    setCommonHeaders(request, reply);
    refuseByHeaders(request);
    // Set the Host header to the host that the client requested, because cookies, the check of `Origin` and the check of the origin of
    // files use it.
    const { host } = clientOf(request);
    if (host !== undefined) request.raw.headers.host = host;
    refuseOnFilesOrigin(request, filesUrl);
    // This check is in the hook and not in the handler, because fastify would first answer QUERY without a Content-Type with 400, and read
    // the body.
    if (request.is404) {
      const refusal = methods.refusalOf(request);
      if (refusal.code === 'resource_not_found' && showNotFound(request, reply)) return reply;
      throw refusal;
    }
    // An empty body needs no type, but wget --post-data= and curl --data '' send the type of a form.
    if (request.headers['content-length'] === '0') delete request.raw.headers['content-type'];
  });
  app.setNotFoundHandler((request, reply) => sendRefusal(methods.refusalOf(request), request, reply, deps.baseUrl()));
  closeConnectionsWhileClosing(app);
  logRequests(app, authorizer, deps.log);
  if (deps.metrics) measureRequests(app);
  parseJsonBodies(app, { authorizer, bodies });
  answerExceptions(app, deps.baseUrl);
  return app;
}

/** Throws the refusal of a request whose headers no endpoint accepts: RFC 9112 3.2 (Host), RFC 9110 10.1.1 (Expect). */
function refuseByHeaders({ raw }: FastifyRequest): void {
  const { host, expect } = raw.headers;
  if (host === undefined && raw.httpVersion === '1.1')
    throw refuse('invalid_request', { detail: 'The request has no Host header.', headers: { connection: 'close' } });
  if (expect !== undefined && !/^100-continue$/i.test(expect.trim()))
    throw refuse('invalid_request', {
      status: 417,
      detail: 'The header Expect may only have the value 100-continue.',
      headers: { connection: 'close' },
    });
}

/**
 * Logs one line for each answered request, without headers and query, because they hold keys and signatures. Health
 * checks and successful requests are logged at `debug`, so that the usual level shows only lines that need attention.
 */
function logRequests(app: FastifyInstance, authorizer: Authorizer, log: Logger): void {
  app.addHook('onResponse', async (request, reply) => {
    const level = reply.statusCode >= 500 ? 'warn' : reply.statusCode >= 400 ? 'info' : 'debug';
    if (!log.isLevelEnabled(level)) return;
    const { principal, session } = authorizer.callerOf(request);
    request.log[level](
      {
        method: request.method,
        path: shownPath(request),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        client: clientOf(request).address,
        trace_id: traceOf(request).traceId,
        ...(principal ? { key_id: principal.keyId } : {}),
        ...(session ? { run_id: session.runId, execution_id: session.executionId } : {}),
      },
      'request',
    );
  });
}

const surfaces = [
  ['/webhooks/', 'webhooks'],
  ['/api/v1/harness-support/', 'agent'],
  ['/api/v1/gateway/', 'gateway'],
  ['/api/v1/mcp/', 'mcp'],
  ['/mcp', 'mcp'],
  ['/api/v1/', 'api'],
] as const;

/** Measures the time of answers. Event streams are excluded, because they end only when the client disconnects. */
function measureRequests(app: FastifyInstance): void {
  app.addHook('onResponse', async (request, reply) => {
    if (String(reply.getHeader('content-type')).startsWith('text/event-stream')) return;
    const route = request.routeOptions?.url ?? '';
    const surface = surfaces.find(([prefix]) => route.startsWith(prefix))?.[1] ?? 'page';
    const labels = { surface, status: `${Math.floor(reply.statusCode / 100)}xx` };
    observe('runyard_http_request_duration_seconds', labels, reply.elapsedTime / 1_000);
  });
}

/** The methods of each registered path. */
interface KnownMethods {
  /** Returns the refusal of a request that no route accepts: 405 with `Allow` if its path has other methods, else 404. */
  refusalOf(request: FastifyRequest): Refusal;
}

const patternOf = (url: string): RegExp => {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`);
};

/** Collects the methods of every route that is registered after this call. */
function collectMethods(app: FastifyInstance): KnownMethods {
  const known = new Map<string, { pattern: RegExp; parameters: number; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const entry = known.get(url) ?? {
      pattern: patternOf(url),
      parameters: url.split(/[:*]/).length,
      methods: new Set<string>(),
    };
    for (const each of [method].flat()) entry.methods.add(each);
    known.set(url, entry);
  });
  return {
    refusalOf: ({ url, method }) => {
      const path = withoutQuery(url);
      const fitting = [...known.values()].filter(({ pattern }) => pattern.test(path));
      // Several registered paths may fit. Like the router, prefer the path with the fewest parameters, because the router prefers literal segments.
      const fewest = Math.min(...fitting.map(({ parameters }) => parameters));
      const allowed = fitting.filter((each) => each.parameters === fewest).flatMap(({ methods }) => [...methods]);
      if (allowed.length === 0) return refuse('resource_not_found', { detail: 'There is nothing at this path.' });
      const allow = [...new Set(allowed)].join(', ');
      const detail = `This path does not accept ${method}. It accepts ${allow}.`;
      return refuse('invalid_request', { status: 405, detail, headers: { allow } });
    },
  };
}
