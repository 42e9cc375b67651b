import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import type { Domain } from '../domain.ts';
import { StoreUnavailable } from '../store/database/unavailable.ts';
import { isWorkerUpgrade } from '../workers/socket.ts';
import type { RefuseWhileFull } from './server/add-route.ts';
import { makeAuthorizer } from './server/authorize.ts';
import { closeConnectionsWhileClosing } from './server/closing.ts';
import type { ServiceDeps } from './server/deps.ts';
import { registerHealthRoutes } from './server/health.ts';
import { parseJsonBodies } from './server/json-bodies.ts';
import { collectMethods } from './server/methods.ts';
import { refusalOf, refuse, sendRefusal, unavailable } from './server/problem.ts';
import { refuseByHeaders } from './server/refuse-by-headers.ts';
import { logRequests } from './server/request-log.ts';
import { requestId, traceOf } from './server/trace.ts';
import { answerUnreadable } from './server/unreadable-request.ts';

/** The time that a client has, milliseconds. */
export interface ClientTimeouts {
  /** For the headers of its request. */
  readonly headersMs: number;
  /** For the whole request: 64 MB of body over a slow line. */
  readonly requestMs: number;
  /** How often both limits are checked. */
  readonly checkEveryMs: number;
}

const defaultTimeouts: ClientTimeouts = { headersMs: 15_000, requestMs: 300_000, checkEveryMs: 2_000 };

/** Headers of every answer. */
function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
}

/** Builds the HTTP side of the service with the routes of the domains. Nothing answers before the app listens. */
export async function buildApp(
  deps: ServiceDeps,
  domains: readonly Domain[],
  timeouts: ClientTimeouts = defaultTimeouts,
): Promise<FastifyInstance> {
  const { db, log, keys, bodies } = deps;
  const app: FastifyInstance = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: requestId,
    childLoggerFactory: (logger, bindings, options) => logger.child({ request_id: bindings.reqId }, options),
    requestTimeout: timeouts.requestMs,
    // Node itself would answer a request without Host, with nothing in the answer: `refuseByHeaders` does.
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      requireHostHeader: false,
      // Without a listener Node would destroy the socket of an upgrade.
      shouldUpgradeCallback: (request) => app.server.listenerCount('upgrade') > 0 && isWorkerUpgrade(request),
    },
    return503OnClosing: false,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: false },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, deps.baseUrl()),
    // No hook runs before it.
    frameworkErrors: (error, request, reply) => {
      setCommonHeaders(request, reply);
      const refusal = refusalOf(error) ?? refuse('invalid_request', { detail: error.message });
      sendRefusal(refusal, request, reply, deps.baseUrl());
    },
  });
  const authorizer = makeAuthorizer(db, keys);
  app.decorate('authorizer', authorizer);

  const methods = collectMethods(app);
  const refuseWhileFull: RefuseWhileFull = async () => {
    const problem = deps.freeSpace.problem();
    if (problem !== null)
      throw unavailable('disk', `Nothing new is stored: ${problem}. Free space there. Reading works.`);
  };
  app.decorate('refuseWhileFull', refuseWhileFull);

  // And one with an expectation that is not 100-continue: it is answered as any other.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.addHook('onRequest', async (request, reply) => {
    setCommonHeaders(request, reply);
    refuseByHeaders(request);
    // Here and not in the handler: fastify answers QUERY without a Content-Type with 400 before it, and reads bodies that nobody wants.
    if (request.is404) throw methods.refusalOf(request);
    // An empty body is none, whatever type it is said to have: wget --post-data= and curl --data '' call it a form.
    if (request.headers['content-length'] === '0') delete request.raw.headers['content-type'];
  });
  closeConnectionsWhileClosing(app);
  logRequests(app, authorizer, log);

  parseJsonBodies(app, { authorizer, bodies });

  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error);
    if (!refusal) request.log.error({ err: error, trace_id: traceOf(request).traceId }, 'request failed');
    else if (error instanceof StoreUnavailable)
      request.log.warn({ err: error, trace_id: traceOf(request).traceId }, 'database or disk is not available');
    return sendRefusal(refusal ?? refuse('internal_error'), request, reply, deps.baseUrl());
  });
  app.setNotFoundHandler((request, reply) => sendRefusal(methods.refusalOf(request), request, reply, deps.baseUrl()));

  registerHealthRoutes(
    app,
    domains.flatMap(({ readiness }) => readiness ?? []),
  );
  for (const domain of domains) await domain.routes?.(app);
  return app;
}
