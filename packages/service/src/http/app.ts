import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { openKeyDirectory } from '../access/keys/directory.ts';
import { type KeyWatch, openKeyWatch } from '../access/keys/watch.ts';
import { type BodyLimits, makeBodyBudget } from '../bodies/body-budget.ts';
import { readLimits } from '../conversations/read-limits.ts';
import { readRepositories } from '../environments/repositories.ts';
import { authenticateWorkingRunToken } from '../executions/run-tokens/sessions.ts';
import { registerGitGateway } from '../gateway/git/git.ts';
import { registerGateway } from '../gateway/models/gateway.ts';
import { StoreUnavailable } from '../store/database/unavailable.ts';
import { recordUsage } from '../usage/record-usage.ts';
import type { WorkerPrincipal } from '../workers/principal.ts';
import { isWorkerUpgrade } from '../workers/socket.ts';
import { registerChildRunRoutes } from './agent/child-runs.ts';
import { registerHarnessArtifactRoutes } from './agent/harness-artifacts.ts';
import { registerHarnessSupport } from './agent/harness-support.ts';
import { registerHarnessWorkspaceRoutes } from './agent/harness-workspace.ts';
import { registerRunMessageRoutes } from './agent/run-messages.ts';
import { registerArtifactRoutes } from './api/artifacts.ts';
import { registerBlobRoutes } from './api/blobs.ts';
import { registerConversationRoutes } from './api/conversations.ts';
import { registerDeleteRunRoute } from './api/delete-run.ts';
import { registerEnvironmentRoutes } from './api/environments.ts';
import { registerEventSubscriptionRoutes } from './api/event-subscriptions.ts';
import { registerHandoffRoutes } from './api/handoff.ts';
import { registerKeyRoutes } from './api/keys.ts';
import { registerLiveRoutes } from './api/live.ts';
import { registerRedirectRoutes } from './api/redirects.ts';
import { registerRunRoutes } from './api/runs.ts';
import { registerServiceInfoRoutes } from './api/service-info.ts';
import { registerPages } from './pages/pages.ts';
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

/** How long a client may take, milliseconds. */
export interface ClientTimeouts {
  /** For its request's headers. */
  readonly headersMs: number;
  /** For the whole request: 64 MB of body over a slow line. */
  readonly requestMs: number;
  /** How often the two are looked at. */
  readonly checkEveryMs: number;
}

const defaultTimeouts: ClientTimeouts = { headersMs: 15_000, requestMs: 300_000, checkEveryMs: 2_000 };

export interface BuiltApp {
  readonly app: FastifyInstance;
  /** The owner of an `Authorization` header; null: 401. */
  authenticateWorker(authorization: string | undefined): Promise<WorkerPrincipal | null>;
  readonly keyWatch: KeyWatch;
}

/** Headers of every answer. */
function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('x-content-type-options', 'nosniff');
}

/** The service's HTTP side, ready to listen. Its gateway, pages and API answer as soon as it does. */
export async function buildApp(
  deps: ServiceDeps,
  timeouts: ClientTimeouts = defaultTimeouts,
  bodyLimits?: BodyLimits,
): Promise<BuiltApp> {
  const { db, log, engine } = deps;
  const keys = await openKeyDirectory(db, log);
  const keyWatch = await openKeyWatch(db, log);
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
  app.addHook('onClose', async () => {
    keys.close();
    keyWatch.close();
  });

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

  const bodies = makeBodyBudget(bodyLimits);
  parseJsonBodies(app, { authorizer, bodies });

  app.setErrorHandler((error, request, reply) => {
    const refusal = refusalOf(error);
    if (!refusal) request.log.error({ err: error, trace_id: traceOf(request).traceId }, 'request failed');
    else if (error instanceof StoreUnavailable)
      request.log.warn({ err: error, trace_id: traceOf(request).traceId }, 'database or disk is not available');
    return sendRefusal(refusal ?? refuse('internal_error'), request, reply, deps.baseUrl());
  });
  app.setNotFoundHandler((request, reply) => sendRefusal(methods.refusalOf(request), request, reply, deps.baseUrl()));

  const conversationReads = makeBodyBudget(readLimits);
  registerHealthRoutes(app, deps);
  registerRunRoutes(app, deps);
  registerDeleteRunRoute(app, deps);
  await registerLiveRoutes(app, deps, keyWatch);
  registerConversationRoutes(app, deps, conversationReads);
  registerRedirectRoutes(app, deps);
  registerArtifactRoutes(app, deps);
  registerBlobRoutes(app, deps);
  registerHandoffRoutes(app, deps);
  registerEnvironmentRoutes(app, deps);
  registerKeyRoutes(app, deps);
  registerEventSubscriptionRoutes(app, deps);
  registerServiceInfoRoutes(app, deps);
  registerHarnessSupport(app, deps, conversationReads);
  registerHarnessArtifactRoutes(app, deps);
  registerChildRunRoutes(app, deps);
  registerRunMessageRoutes(app, deps);
  registerHarnessWorkspaceRoutes(app, deps);
  await registerPages(app, deps);
  const ofRunToken = (token: string) => authenticateWorkingRunToken(db, token);
  await registerGateway(app, {
    models: deps.models,
    authenticateRunToken: ofRunToken,
    recordUsage: (usage) => recordUsage(db, usage),
    ...(deps.admitModelRequest ? { admit: deps.admitModelRequest } : {}),
    log,
    bodies,
  });
  await registerGitGateway(app, {
    codeHostUrl: deps.settings.RUNYARD_CODE_HOST_URL,
    authenticateRunToken: ofRunToken,
    repositoriesOf: (executionId) => readRepositories(engine.db, executionId),
    // Credentials of code hosts are not kept yet: public repositories only.
    codeHostCredential: async () => undefined,
    log,
  });

  return {
    app,
    keyWatch,
    authenticateWorker: async (authorization) => {
      const principal = await authorizer.findPrincipal(authorization);
      return principal && { keyId: principal.keyId, teamId: principal.teamId, isOperator: principal.isOperator };
    },
  };
}
