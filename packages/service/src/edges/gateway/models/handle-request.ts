import { randomUUID } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { gatewayErrorHeader } from '@runyard/contract/agent/headers';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { closedSignal } from '../../../platform/bodies/answered-client.ts';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { type HeldBody, holdBody } from '../../../platform/bodies/request-bodies.ts';
import { busyRetrySeconds } from '../../../platform/serving/refusal.ts';
import { StoreUnavailable } from '../../../platform/store/database/unavailable.ts';
import { oneModel, type RunModels } from '../../../runs/runs/model-in-use.ts';
import { disabledMessage } from '../../../team/models/describe-offer.ts';
import type { Models, ModelTarget } from '../../../team/models/models.ts';
import { type ProviderName, providerKinds } from '../../../team/models/providers.ts';
import type { ModelUsage, RunTokenHolder } from '../../../team/usage/model-usage.ts';
import type { InFlight } from '../in-flight.ts';
import { type AdmitModelRequest, type AdmittedRequest, headersOfRefusal } from './admission.ts';
import { type Candidates, findCandidates } from './candidates.ts';
import { type CheckedRequest, checkRequest } from './check-request.ts';
import type { Endpoint } from './endpoints.ts';
import { answerError } from './exchange.ts';
import { type ModelRouting, routeRequest } from './route-request.ts';
import type { Upstreams, UpstreamTimeouts } from './upstream.ts';
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

/** The parts of a gateway that its requests share. */
export interface OpenGateway {
  readonly deps: GatewayDeps;
  readonly upstreams: Upstreams;
  readonly inFlight: InFlight;
  readonly bodies: BodyBudget;
}

/** A request whose run token is valid. */
export interface TokenRequest {
  readonly token: string;
  readonly holder: RunTokenHolder;
  readonly endpoint: Endpoint;
  readonly query: URLSearchParams;
}

type Generating = TokenRequest & { readonly endpoint: Exclude<Endpoint, { kind: 'models' }> };
type Body = Extract<HeldBody, { kind: 'body' }>;
type Checked = Extract<CheckedRequest, { ok: true }>;

/** A request that the gateway does not send to a provider. */
export interface RefusedRequest {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const tokenNeeded = 'a valid run token is needed: the run of this sandbox may have ended';
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

/**
 * Handles a request of a run: finds its models, reads, checks and admits it, and sends it to a provider. `answered`: the reply was sent or
 * is being sent.
 */
export async function handleRequest(
  gateway: OpenGateway,
  provider: ProviderName,
  asked: TokenRequest,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<'answered' | RefusedRequest> {
  const { deps } = gateway;
  const { holder, endpoint } = asked;
  const found = await findModels(deps, provider, asked);
  if ('status' in found) return found;
  const { candidates, run } = found;
  if (endpoint.kind === 'models') {
    reply.send(modelsAnswer(candidates.own));
    return 'answered';
  }
  const generating = { ...asked, endpoint };
  const received = await holdBody(gateway.bodies, {
    request: request.raw,
    response: reply.raw,
    owner: { teamId: holder.teamId, executionId: holder.executionId },
    maxBytes: deps.maxBodyBytes ?? defaultMaxBodyBytes,
  });
  if (received.kind !== 'body') {
    // Closes the connection, because the rest of the body is not read.
    const retry = received.kind === 'busy' ? { 'retry-after': String(busyRetrySeconds) } : {};
    return { ...unread[received.kind], headers: { connection: 'close', ...retry } };
  }
  const first = candidates.targets[0] ?? candidates.own;
  const rights = { names: candidates.names, providerTools: run.providerTools };
  const checked = await checkRequest(endpoint, first, received.bytes, rights);
  if (!checked.ok) return { status: checked.status, message: checked.message };
  if (checked.removed.length > 0) await deps.routing?.removed(holder, checked.removed);
  const promptTokens = endpoint.kind === 'generate' ? await estimateTokens(checked.body) : 0;
  // The execution may have ended or been assigned to another worker while the body arrived.
  if ((await deps.authenticateRunToken(asked.token)) === null) return { status: 401, message: tokenNeeded };
  const admit = admitter(gateway, generating, { checked, promptTokens, disconnect: closedSignal(reply.raw) });
  const admission = await admit(first, checked.body);
  if (!admission.ok) {
    const { status, message } = admission;
    return { status, message, headers: headersOfRefusal(admission) };
  }
  send(gateway, provider, reply, {
    asked: generating,
    request: request.raw,
    received,
    checked,
    promptTokens,
    run,
    names: candidates.names,
    targets: [first, ...candidates.targets.slice(1)],
    admit,
    requestId: admission.requestId,
  });
  return 'answered';
}

/** Finds the models that may take the request. */
async function findModels(
  deps: GatewayDeps,
  provider: ProviderName,
  { holder, endpoint }: TokenRequest,
): Promise<{ readonly candidates: Candidates; readonly run: RunModels } | RefusedRequest> {
  const target = deps.models.target(holder.modelId);
  if (target === undefined)
    return { status: 403, message: `the model of this run, ${holder.modelId}, has no provider that is configured` };
  const run = (await deps.routing?.read(holder)) ?? oneModel;
  if (run.choices.disabledIds.includes(target.id)) return { status: 403, message: disabledMessage(target.id) };
  const candidates = findCandidates(deps.models, holder.modelId, run, provider, endpoint);
  if (candidates !== null) return { candidates, run };
  const { gatewayPath } = providerKinds[target.provider];
  return { status: 403, message: `this run uses the model ${target.id}, which is behind ${gatewayPath}` };
}

type Admit = (target: ModelTarget, parts: readonly Buffer[]) => Promise<AdmittedRequest>;

/** Returns the function that admits the request for a model: budgets check each model with its own price. */
function admitter(
  { deps, inFlight }: OpenGateway,
  { holder, endpoint, token }: Generating,
  of: { readonly checked: Checked; readonly promptTokens: number; readonly disconnect: AbortSignal },
): Admit {
  return async (target, parts) => {
    const requestId = randomUUID();
    const admission = await deps.admit?.(holder, {
      requestId,
      kind: endpoint.kind,
      target,
      bytes: parts.reduce((sum, part) => sum + part.byteLength, 0),
      promptTokens: of.promptTokens,
      answers: of.checked.answers,
      signal: AbortSignal.any([of.disconnect, inFlight.signal]),
      isAtWork: async () => (await deps.authenticateRunToken(token)) !== null,
    });
    return admission?.ok === false ? admission : { ok: true, requestId };
  };
}

interface AdmittedParts {
  readonly asked: Generating;
  readonly request: FastifyRequest['raw'];
  readonly received: Body;
  readonly checked: Checked;
  readonly promptTokens: number;
  readonly run: RunModels;
  readonly names: readonly string[];
  readonly targets: readonly [ModelTarget, ...ModelTarget[]];
  readonly admit: Admit;
  readonly requestId: string;
}

/** Sends an admitted request to the providers of its models, and the answer to the client. The gateway waits for it when it closes. */
function send(
  { deps, upstreams, inFlight }: OpenGateway,
  provider: ProviderName,
  reply: FastifyReply,
  of: AdmittedParts,
): void {
  const { asked, request, received, checked, promptTokens, run, names, targets, admit, requestId } = of;
  const { holder, endpoint, query } = asked;
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
    requestId,
    request,
    query,
    body,
    promptTokens,
    ownHeaders,
    targets,
  };
  const work = routeRequest(
    { upstreams, routing: deps.routing, recordUsage: (usage) => deps.recordUsage(usage), log: deps.log },
    { ...sent, tools: checked.tools },
    reply.raw,
    inFlight.signal,
  ).catch((error: unknown) => {
    deps.log.error({ err: error, run_id: holder.runId }, 'a model request is not accounted for');
    if (reply.raw.writableEnded) return;
    if (reply.raw.headersSent || error instanceof StoreUnavailable) reply.raw.destroy();
    else {
      const message = 'the gateway could not send the request to the provider; the log of the service has the reason';
      answerError(reply.raw, provider, { status: 500, message, headers: { ...ownHeaders, ...ownFaultHeaders } });
    }
  });
  inFlight.track(work);
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
