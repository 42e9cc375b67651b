/** Sends a request of a run to its model, and in an outage to the next model that the run allows. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import { count, observe } from '../../../platform/metrics/record.ts';
import type { ModelSwitch, RunModels } from '../../../runs/runs/model-in-use.ts';
import { type Outage, outageOf } from '../../../team/models/choices.ts';
import type { ModelTarget } from '../../../team/models/models.ts';
import type { ProviderName } from '../../../team/models/providers.ts';
import { type ModelUsage, type RunTokenHolder, usageOf } from '../../../team/usage/model-usage.ts';
import { type AdmittedRequest, headersOfRefusal } from './admission.ts';
import { endpointFor } from './candidates.ts';
import { checkRequest } from './check-request.ts';
import type { Endpoint } from './endpoints.ts';
import { answerError, type ExchangeResult, exchange, letGo, type SentBody } from './exchange.ts';
import type { Upstreams } from './upstream.ts';

/** The calls by which the gateway reads the models of a run and reports their answers, failures and changes. */
export interface ModelRouting {
  read(holder: RunTokenHolder): Promise<RunModels>;
  /** Notes that the provider answered. `outage`: the outage that was known when the request began. */
  worked(provider: ProviderName, outage: Outage | undefined): void;
  failed(provider: ProviderName, run: Pick<RunTokenHolder, 'runId' | 'teamId'>, reason: string): void;
  switched(change: ModelSwitch): Promise<void>;
  /** Records the parts that were removed from a request, because the gateway does not know them. */
  removed(holder: RunTokenHolder, names: readonly string[]): Promise<void>;
}

interface RouteDeps {
  readonly upstreams: Upstreams;
  readonly routing: ModelRouting | undefined;
  recordUsage(usage: ModelUsage): Promise<void>;
  readonly log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
}

/** A checked request that was written and admitted for the first of `targets`. */
export interface RoutedRequest {
  readonly holder: RunTokenHolder;
  readonly endpoint: Exclude<Endpoint, { kind: 'models' }>;
  readonly targets: readonly [ModelTarget, ...ModelTarget[]];
  readonly names: readonly string[];
  /** UUID under which the request to the first model is recorded. */
  readonly requestId: string;
  /** Decides whether another model may be tried: budgets check each model with its own price. */
  admit(target: ModelTarget, parts: readonly Buffer[]): Promise<AdmittedRequest>;
  readonly run: RunModels;
  readonly request: IncomingMessage;
  readonly query: URLSearchParams;
  readonly body: SentBody;
  /** Number of tokens of the prompt, estimated from the text of the request. */
  readonly promptTokens: number;
  /** Tools of the provider that this request may use outside of the sandbox. */
  readonly tools: ReadonlySet<ProviderTool>;
  readonly ownHeaders: Readonly<Record<string, string>>;
}

/** Tries the models in order, and forwards the first answer to the client. The usage of each try is recorded with its own model. */
export async function routeRequest(
  deps: RouteDeps,
  sent: RoutedRequest,
  client: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { holder, targets, body } = sent;
  let reason = 'its provider has an outage';
  let requestId = sent.requestId;
  for (const [index, target] of targets.entries()) {
    const endpoint = endpointFor(sent.endpoint, target);
    if (index > 0) {
      if (!body.original) throw new Error('the body of the request was released before its answer');
      const checked = await checkRequest(sent.endpoint, target, body.original, {
        names: sent.names,
        providerTools: sent.run.providerTools,
      });
      if (!checked.ok) throw new Error(`the request cannot be written for ${target.id}: ${checked.message}`);
      const admission = await sent.admit(target, checked.body);
      if (!admission.ok) {
        letGo(body);
        const { status, message } = admission;
        const headers = { ...sent.ownHeaders, ...headersOfRefusal(admission) };
        return answerError(client, target.provider, { status, message, headers });
      }
      requestId = admission.requestId;
      body.parts = checked.body;
      body.plain = checked.plainBody;
    }
    const mayMove = index < targets.length - 1;
    const started = performance.now();
    const { request, query, promptTokens, tools, ownHeaders } = sent;
    const result = await exchange(
      deps.upstreams,
      { endpoint, target, request, query, body, promptTokens, tools, ownHeaders, mayMove },
      client,
      signal,
    );
    await account(deps, { ...sent, requestId }, target, result, performance.now() - started);
    if (result.isOpen) {
      reason = result.fault ?? reason;
      continue;
    }
    if (result.health === 'works' && target.id !== holder.modelId) {
      const change = { runId: holder.runId, executionId: holder.executionId, from: holder.modelId, to: target.id };
      await deps.routing?.switched({ ...change, reason });
    }
    return;
  }
}

/** Counts a request, with its tokens and its cost. */
function measureUsage(usage: ModelUsage, health: ExchangeResult['health']): void {
  const { modelId: model, status } = usage;
  const refused = status >= 400 && status < 500 ? 'refused' : 'answered';
  const result = status === 499 ? 'abandoned' : health === 'unreachable' || health === 'fails' ? 'failed' : refused;
  count('runyard_model_requests_total', { model, result });
  observe('runyard_model_request_duration_seconds', { model }, usage.durationMs / 1_000);
  const tokens = {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cache_read: usage.cacheReadTokens,
    cache_write: usage.cacheWriteTokens,
  };
  for (const [kind, tokensOfKind] of Object.entries(tokens))
    if (tokensOfKind > 0) count('runyard_model_tokens_total', { model, kind }, tokensOfKind);
  if (usage.costUsd) count('runyard_model_cost_dollars_total', { model }, usage.costUsd);
}

async function account(
  deps: RouteDeps,
  { holder, endpoint, run, requestId }: RoutedRequest,
  target: ModelTarget,
  result: ExchangeResult,
  ms: number,
): Promise<void> {
  const usage = usageOf(holder, target, requestId, result, ms);
  if (endpoint.kind === 'generate') measureUsage(usage, result.health);
  const fields = {
    request_id: requestId,
    run_id: holder.runId,
    model_id: target.id,
    status: result.status,
    duration_ms: usage.durationMs,
  };
  if (result.fault === undefined) deps.log.info(fields, 'model request');
  else deps.log.warn({ ...fields, fault: result.fault }, 'model request failed');
  const { provider } = target;
  if (result.health === 'works') deps.routing?.worked(provider, outageOf(run.choices, provider));
  else if (result.health !== undefined) deps.routing?.failed(provider, holder, result.fault ?? 'it fails');
  if (endpoint.kind === 'generate') await deps.recordUsage(usage);
}
