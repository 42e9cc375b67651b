import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { type ProviderName, providerKinds } from '../../../team/models/providers.ts';
import { trackInFlight } from '../in-flight.ts';
import { runTokenOf } from './credentials.ts';
import { describeEndpoints, endpointOf, gatewayRootOf } from './endpoints.ts';
import { type GatewayDeps, handleRequest, type OpenGateway, type TokenRequest, tokenNeeded } from './handle-request.ts';
import { providerError } from './provider-error.ts';
import { openUpstreams } from './upstream.ts';

/** Returns path and query of a request, not normalized. */
function addressOf(request: FastifyRequest): { path: string; query: URLSearchParams } {
  const [path = '', ...query] = (request.raw.url ?? '').split('?');
  return { path, query: new URLSearchParams(query.join('?')) };
}

/** Registers the model gateway: `/api/v1/gateway/{anthropic|openai|google|local}/…`. */
export async function registerGateway(app: FastifyInstance, deps: GatewayDeps): Promise<void> {
  const upstreams = openUpstreams(deps.timeouts, deps.lookup);
  const inFlight = trackInFlight();
  app.addHook('preClose', async () => {
    await inFlight.drain(deps.drainMs ?? 5_000);
    upstreams.close();
  });
  const gateway: OpenGateway = { deps, upstreams, inFlight, bodies: deps.bodies ?? makeBodyBudget() };
  for (const provider of Object.keys(providerKinds) as ProviderName[]) {
    await app.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      // Fastify does not read the body, because the handler reads it.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      registerProvider(scope, provider, gateway);
    });
  }
}

function registerProvider(scope: FastifyInstance, provider: ProviderName, gateway: OpenGateway): void {
  const { deps } = gateway;
  const refuse = (reply: FastifyReply, status: number, message: string): FastifyReply =>
    reply
      .code(status)
      .header('content-type', 'application/json')
      .send(JSON.stringify(providerError(provider, status, message)));
  const admitted = new WeakMap<FastifyRequest, TokenRequest>();

  scope.setErrorHandler((error, _request, reply) => {
    if (error instanceof StoreUnavailable) {
      deps.log.warn({ err: error, provider }, 'the model gateway cannot reach the database');
      return refuse(reply.header('retry-after', '2'), 503, 'the service cannot reach its database: try again');
    }
    const status =
      error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
    if (status >= 500) deps.log.error({ err: error, provider }, 'the model gateway failed');
    return refuse(reply, status, status < 500 ? 'the request cannot be read' : 'internal error');
  });

  // Checks the token before the body is read, so that a caller without a run token cannot make the service hold a body in memory.
  scope.addHook('onRequest', async (request, reply) => {
    const { path, query } = addressOf(request);
    const token = runTokenOf(request.headers, query);
    const holder = token === undefined ? null : await deps.authenticateRunToken(token);
    if (token === undefined || holder === null) return refuse(reply, 401, tokenNeeded);
    const endpoint = endpointOf(provider, request.method, path);
    if (endpoint === undefined) return refuse(reply, 404, describeEndpoints(provider));
    admitted.set(request, { token, holder, endpoint, query });
    return undefined;
  });

  // Fastify's request log would contain the query, which may have a token, so the gateway writes its own log line.
  scope.route({ method: ['GET', 'POST'], url: `${gatewayRootOf(provider)}/*`, logLevel: 'silent', handler });

  async function handler(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const asked = admitted.get(request);
    if (asked === undefined) return refuse(reply, 500, 'internal error');
    const outcome = await handleRequest(gateway, provider, asked, request, reply);
    if (outcome === 'answered') return reply;
    const { status, message, headers = {} } = outcome;
    const { runId, modelId } = asked.holder;
    // The operator finds the reason in the log.
    if (status !== 401)
      deps.log.warn({ run_id: runId, model_id: modelId, status, reason: message }, 'model request refused');
    return refuse(reply.headers(headers), status, message);
  }
}
