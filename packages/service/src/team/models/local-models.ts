import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Model } from '@runyard/contract/team/models';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { z } from 'zod';
import { connectionReason } from './connection-reason.ts';
import { endpointOf, lookupFor, type Upstream } from './providers.ts';

const Answer = z.object({ data: z.array(z.object({ id: z.string().min(1).max(200) })).max(5000) });

/** The models in the list of an OpenAI-compatible endpoint, or the reason why there is no list, as a sentence without secrets. */
export type LocalModels = { ok: true; ids: string[] } | { ok: false; reason: string };

const maxBytes = 4 * 1024 * 1024;

/** Asks `GET {base URL}/models`. Never throws, follows no redirect, and reads at most 4 MB. */
export async function fetchLocalModels(upstream: Upstream, timeoutMs: number): Promise<LocalModels> {
  try {
    const response = await getModels(upstream, AbortSignal.timeout(timeoutMs));
    if (response.statusCode !== 200) {
      response.destroy();
      return { ok: false, reason: `it answered ${response.statusCode} to GET /models` };
    }
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.byteLength;
      if (size > maxBytes) return { ok: false, reason: 'its answer is larger than 4 MB' };
      parts.push(part);
    }
    const parsed = Answer.safeParse(JSON.parse(Buffer.concat(parts).toString('utf8')));
    if (!parsed.success) return { ok: false, reason: 'its answer is not a list of models' };
    return { ok: true, ids: parsed.data.data.map((model) => model.id) };
  } catch (error) {
    return { ok: false, reason: reasonOf(error, timeoutMs) };
  }
}

/** Uses node:http, like the gateway, because fetch refuses some ports without an error message. */
async function getModels(upstream: Upstream, signal: AbortSignal): Promise<IncomingMessage> {
  const { baseUrl, key } = upstream;
  const url = new URL(`${baseUrl}/models`);
  const headers = { accept: 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  const { get } = url.protocol === 'https:' ? https : http;
  const lookup = await lookupFor(upstream, url, signal);
  const request = get(url, { headers, signal, lookup, agent: agentFor(url) });
  const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
  return response;
}

function reasonOf(error: unknown, timeoutMs: number): string {
  if (error instanceof SyntaxError) return 'its answer is not JSON';
  if (!(error instanceof Error)) return 'it cannot be reached';
  if (error.name === 'AbortError' || error.name === 'TimeoutError')
    return `it did not answer within ${timeoutMs / 1000} s`;
  return `it cannot be reached${connectionReason(error)}`;
}

/** Id that stands for the first model in the endpoint's list. A run that begins with this id gets that model. */
export const firstLocalId = 'local/auto';

const describeMissingList = (local: LocalModels | undefined): string => {
  if (local === undefined) return 'no request was sent to the endpoint yet';
  return local.ok ? 'it lists no model' : local.reason;
};

/** Returns the entry for the first model of the endpoint, as the API's list of models shows it. */
export function unlistedModel(upstream: Upstream, local: LocalModels | undefined): Model {
  const endpoint = endpointOf(upstream);
  return {
    id: firstLocalId,
    display_name: `First model of ${endpoint}`,
    provider: 'UNKNOWN',
    vision_supported: false,
    description: `The models of RUNYARD_MODEL_BASE_URL (${endpoint}) are not known: ${describeMissingList(local)}.`,
    disable_reason: 'PROVIDER_OUTAGE',
  };
}

/** Returns the reason why a run cannot begin with the first model of the endpoint, and what to do. */
export function noListMessage(upstream: Upstream, local: LocalModels | undefined): string {
  const advice = local?.ok
    ? 'Load a model there (Ollama: `ollama pull qwen3`), then run again.'
    : "Start the endpoint, or correct RUNYARD_MODEL_BASE_URL and start Runyard again. If it lists no models, set the model's name with RUNYARD_DEFAULT_MODEL=local/NAME.";
  return `The models of the endpoint ${endpointOf(upstream)} (RUNYARD_MODEL_BASE_URL) are not known: ${describeMissingList(local)}. ${advice}`;
}
