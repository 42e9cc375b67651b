import { randomUUID } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { closedSignal } from '../../../platform/bodies/answered-client.ts';
import { type BodyBudget, makeBodyBudget } from '../../../platform/bodies/body-budget.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import { busyRetrySeconds } from '../../../platform/serving/refusal.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { oneModel } from '../../../runs/runs/model-in-use.ts';
import { disabledMessage } from '../../../team/models/describe-offer.ts';
import type { Models, ModelTarget } from '../../../team/models/models.ts';
import { type ProviderName, providerKinds } from '../../../team/models/providers.ts';
import type { ModelUsage, RunTokenHolder } from '../../../team/usage/model-usage.ts';
import { trackInFlight } from '../in-flight.ts';
import { type AdmitModelRequest, type AdmittedRequest, headersOfRefusal } from './admission.ts';
import { findCandidates } from './candidates.ts';
import { checkRequest } from './check-request.ts';
import { runTokenOf } from './credentials.ts';
import { describeEndpoints, type Endpoint, endpointOf, gatewayRootOf } from './endpoints.ts';
import { answerError } from './exchange.ts';
import { providerError } from './provider-error.ts';
import { type ModelRouting, routeRequest } from './route-request.ts';
import { openUpstreams, type UpstreamTimeouts } from './upstream.ts';
import { estimateTokens } from './usage/at-least.ts';

export interface GatewayLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface GatewayDeps {
  readonly models: Pick<Models, 'target'>;
  /** Returns the holder of a run token; null if the token is unknown, has ended or was superseded by a newer token. */
  authenticateRunToken(token: string): Promise<RunTokenHolder | null>;
  /** The gateway calls this function once for each request to a model, when the request has ended in any way. If the call fails, the
   * gateway only logs the failure. */
  recordUsage(usage: ModelUsage): Promise<void>;
  /** Reads fallbacks, disabled models and the health of providers. Absent: each run can use only its own model. */
  readonly routing?: ModelRouting;
  /** Default: admits every request. */
  readonly admit?: AdmitModelRequest;
  readonly log: GatewayLog;
  /** Default: `defaultTimeouts` of upstream.ts. */
  readonly timeouts?: UpstreamTimeouts;
  /** Looks up the host names of the providers. Default: uses the configuration of the machine. */
  readonly lookup?: LookupFunction;
  /** Default: 16 MB. */
  readonly maxBodyBytes?: number;
  /** Memory budget for the bodies of requests. Default: a budget that only this gateway uses. */
  readonly bodies?: BodyBudget;
  /** When the service closes, requests in flight may continue for this time, milliseconds. Default: 5,000. */
  readonly drainMs?: number;
}

interface Admitted {
  readonly token: string;
  readonly holder: RunTokenHolder;
  readonly endpoint: Endpoint;
  readonly query: URLSearchParams;
}

const tokenNeeded = 'a valid run token is needed: the run of this sandbox may have ended';
/** Largest request to a model: a long conversation with some images. */
const defaultMaxBodyBytes = 16 * 1024 * 1024;

/**
 * Headers of the answer after a fault of the service, such as a header that cannot be sent. The same request would have the same fault, so
 * clients do not send it again.
 */
const ownFaultHeaders = { 'x-should-retry': 'false', [gatewayErrorHeader]: 'internal_error' } as const;

/** Answers to requests whose body the gateway did not read. */
const unread = {
  busy: { status: 429, message: 'too many requests of this run are in flight; send this request again later' },
  too_large: { status: 413, message: 'the request is larger than the gateway accepts' },
  too_slow: { status: 408, message: 'the request arrived too slowly' },
  cut: { status: 400, message: 'the request cannot be read' },
} as const;

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
  const bodies = deps.bodies ?? makeBodyBudget();
  for (const provider of Object.keys(providerKinds) as ProviderName[]) {
    await app.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      // Fastify does not read the body, because the handler reads it.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
      registerProvider(scope, provider);
    });
  }

  function registerProvider(scope: FastifyInstance, provider: ProviderName): void {
    const refuse = (reply: FastifyReply, status: number, message: string): FastifyReply =>
      reply
        .code(status)
        .header('content-type', 'application/json')
        .send(JSON.stringify(providerError(provider, status, message)));
    const admitted = new WeakMap<FastifyRequest, Admitted>();

    scope.setErrorHandler((error, _request, reply) => {
      if (error instanceof StoreUnavailable) {
        deps.log.warn({ err: error, provider }, 'the model gateway cannot reach the database');
        return refuse(reply.header('retry-after', '2'), 503, 'the service cannot reach its database: try again');
      }
      const status =
        error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
          ? error.statusCode
          : 500;
      if (status >= 500) deps.log.error({ err: error, provider }, 'the model gateway failed');
      return refuse(reply, status, status < 500 ? 'the request cannot be read' : 'internal error');
    });

    /** Refuses a request of a known run. The operator finds the reason in the log. */
    const refuseRun = (
      reply: FastifyReply,
      { runId, modelId }: RunTokenHolder,
      status: number,
      message: string,
    ): FastifyReply => {
      deps.log.warn({ run_id: runId, model_id: modelId, status, reason: message }, 'model request refused');
      return refuse(reply, status, message);
    };

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
      const { token, holder, endpoint, query } = admitted.get(request) ?? {};
      if (token === undefined || holder === undefined || endpoint === undefined || query === undefined)
        return refuse(reply, 500, 'internal error');
      const target = deps.models.target(holder.modelId);
      if (target === undefined)
        return refuseRun(
          reply,
          holder,
          403,
          `the model of this run, ${holder.modelId}, has no provider that is configured`,
        );
      const run = (await deps.routing?.read(holder)) ?? oneModel;
      if (run.choices.disabledIds.includes(target.id)) return refuseRun(reply, holder, 403, disabledMessage(target.id));
      const candidates = findCandidates(deps.models, holder.modelId, run, provider, endpoint);
      if (candidates === null) {
        return refuseRun(
          reply,
          holder,
          403,
          `this run uses the model ${target.id}, which is behind ${providerKinds[target.provider].gatewayPath}`,
        );
      }
      if (endpoint.kind === 'models') return reply.send(modelsAnswer(candidates.own));
      const received = await holdBody(bodies, {
        request: request.raw,
        response: reply.raw,
        owner: { teamId: holder.teamId, executionId: holder.executionId },
        maxBytes: deps.maxBodyBytes ?? defaultMaxBodyBytes,
      });
      if (received.kind !== 'body') {
        // Closes the connection, because the rest of the body is not read.
        reply.header('connection', 'close');
        if (received.kind === 'busy') reply.header('retry-after', String(busyRetrySeconds));
        const { status, message } = unread[received.kind];
        return refuseRun(reply, holder, status, message);
      }
      const { names, targets } = candidates;
      const first = targets[0] ?? candidates.own;
      const { providerTools } = run;
      const checked = await checkRequest(endpoint, first, received.bytes, { names, providerTools });
      if (!checked.ok) return refuseRun(reply, holder, checked.status, checked.message);
      if (checked.removed.length > 0) await deps.routing?.removed(holder, checked.removed);
      const promptTokens = endpoint.kind === 'generate' ? await estimateTokens(checked.body) : 0;
      // The execution may have ended or been assigned to another worker while the body arrived.
      if ((await deps.authenticateRunToken(token)) === null) return refuse(reply, 401, tokenNeeded);
      const disconnect = closedSignal(reply.raw);
      const admit = async (target: ModelTarget, parts: readonly Buffer[]): Promise<AdmittedRequest> => {
        const requestId = randomUUID();
        const admission = await deps.admit?.(holder, {
          requestId,
          kind: endpoint.kind,
          target,
          bytes: parts.reduce((sum, part) => sum + part.byteLength, 0),
          promptTokens,
          answers: checked.answers,
          signal: AbortSignal.any([disconnect, inFlight.signal]),
          isAtWork: async () => (await deps.authenticateRunToken(token)) !== null,
        });
        return admission?.ok === false ? admission : { ok: true, requestId };
      };
      const admission = await admit(first, checked.body);
      if (!admission.ok)
        return refuseRun(reply.headers(headersOfRefusal(admission)), holder, admission.status, admission.message);
      const ownHeaders: Record<string, string> = {};
      for (const [name, value] of Object.entries(reply.getHeaders())) ownHeaders[name] = String(value);
      reply.hijack();
      const { place, bytes: original } = received;
      const body = { parts: checked.body, plain: checked.plainBody, original, release: () => place.releaseBytes() };
      const sent = {
        holder,
        endpoint,
        names,
        run,
        admit,
        requestId: admission.requestId,
        request: request.raw,
        query,
        body,
        promptTokens,
        tools: checked.tools,
        ownHeaders,
      };
      const work = routeRequest(
        { upstreams, routing: deps.routing, recordUsage: (usage) => deps.recordUsage(usage), log: deps.log },
        { ...sent, targets: [first, ...targets.slice(1)] },
        reply.raw,
        inFlight.signal,
      ).catch((error: unknown) => {
        deps.log.error({ err: error, run_id: holder.runId }, 'a model request is not accounted for');
        if (reply.raw.writableEnded) return;
        if (reply.raw.headersSent || error instanceof StoreUnavailable) reply.raw.destroy();
        else {
          const message =
            'the gateway could not send the request to the provider; the log of the service has the reason';
          answerError(reply.raw, provider, { status: 500, message, headers: { ...ownHeaders, ...ownFaultHeaders } });
        }
      });
      inFlight.track(work);
      return reply;
    }
  }
}

/**
 * Returns the answer of `GET …/models` in the provider's format: a list with only the run's model. Clients request this list before they
 * begin.
 */
function modelsAnswer(target: ModelTarget): unknown {
  const id = target.providerModel;
  switch (target.provider) {
    case 'anthropic': {
      const data = [{ type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' }];
      return { data, has_more: false, first_id: id, last_id: id };
    }
    case 'google':
      return { models: [{ name: `models/${id}`, supportedGenerationMethods: ['generateContent', 'countTokens'] }] };
    case 'openai':
    case 'local':
      return { object: 'list', data: [{ id, object: 'model', created: 0, owned_by: target.provider }] };
  }
}
