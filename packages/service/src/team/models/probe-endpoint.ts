/** Asks an OpenAI-compatible endpoint once whether a model streams and calls tools. */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { connectionReason } from './connection-reason.ts';
import type { ModelsLog } from './local-list.ts';
import type { Offer } from './offers.ts';
import { lookupFor, type Upstream } from './providers.ts';

/** `reason`: the part of a sentence after the word "because". It contains no text of the endpoint. */
export type Abilities =
  | {
      readonly kind: 'probed';
      readonly streams: boolean;
      readonly callsTools: boolean;
      /** False if the endpoint refuses `stream_options`, so it does not report the usage of streams. */
      readonly takesStreamOptions: boolean;
    }
  | { readonly kind: 'failed'; readonly reason: string };

/** Maximum size of an answer. The answer is one sentence or one tool call, so a few kilobytes are usual. */
const maxBytes = 256 * 1024;

/** Returns whether a probe has shown that an endpoint refuses `stream_options`. */
export const isWithoutStreamOptions = (abilities: Abilities): boolean =>
  abilities.kind === 'probed' && !abilities.takesStreamOptions;

/** Probes a model of an endpoint, for at most `timeoutMs`. */
export type Probe = (upstream: Upstream, model: string, timeoutMs: number) => Promise<Abilities>;

/** Wait long, because a laptop needs a long time to load even a small model. */
const probeTimeoutMs = 60_000;

/** Returns a function that probes once, in the background, and a function that gives the result by the id of the probed model. */
export function startableProbe(log: ModelsLog | undefined) {
  const abilities = new Map<string, Abilities>();
  let hasBegun = false;
  return {
    abilities: abilities as ReadonlyMap<string, Abilities>,
    begin(upstream: Upstream, { id, providerModel }: Pick<Offer, 'id' | 'providerModel'>, probe: Probe): void {
      if (hasBegun) return;
      hasBegun = true;
      void probe(upstream, providerModel, probeTimeoutMs).then((result) => {
        abilities.set(id, result);
        log?.info({ model_id: id, ...result }, 'RUNYARD_MODEL_BASE_URL was probed');
      });
    },
  };
}

const question = (model: string, withOptions: boolean) => ({
  model,
  stream: true,
  ...(withOptions ? { stream_options: { include_usage: true } } : {}),
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Call the tool "ping" now. Do not answer in words.' }],
  tools: [
    {
      type: 'function',
      function: { name: 'ping', description: 'Answers pong.', parameters: { type: 'object', properties: {} } },
    },
  ],
});

/** Probes one model. Never throws, follows no redirect, reads at most 256 KB, and waits at most `timeoutMs` for the whole answer. */
export async function probeEndpoint(upstream: Upstream, model: string, timeoutMs: number): Promise<Abilities> {
  const failed = (reason: string): Abilities => ({ kind: 'failed', reason });
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const ended = (from: IncomingMessage) =>
      void signal.addEventListener('abort', () => from.destroy(signal.reason as Error), { once: true });
    let response = await ask(upstream, question(model, true), signal);
    ended(response);
    // Probe again without `stream_options`, because some endpoints refuse members that they do not know.
    const takesStreamOptions = response.statusCode !== 400 && response.statusCode !== 422;
    if (!takesStreamOptions) {
      response.destroy();
      response = await ask(upstream, question(model, false), signal);
      ended(response);
    }
    if (response.statusCode !== 200) {
      response.destroy();
      return failed(`it answered ${response.statusCode} to a request with a tool`);
    }
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.byteLength;
      if (size > maxBytes) return failed('its answer is larger than 256 KB');
      parts.push(part);
    }
    const type = response.headers['content-type'] ?? '';
    if (type.startsWith('text/html')) return failed('it answered with a web page');
    const found = abilitiesOf(type, Buffer.concat(parts).toString('utf8'));
    return found.kind === 'failed' ? found : { ...found, takesStreamOptions };
  } catch (error) {
    if (error instanceof SyntaxError) return failed('its answer does not have the form of the OpenAI API');
    if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
      return failed(`it did not answer within ${timeoutMs / 1000} s`);
    return failed(`it cannot be reached${connectionReason(error as NodeJS.ErrnoException)}`);
  }
}

function abilitiesOf(contentType: string, text: string) {
  const streams = contentType.startsWith('text/event-stream');
  const documents = streams
    ? text
        .split('\n')
        .filter((line) => line.startsWith('data:') && !line.includes('[DONE]'))
        .map((line) => JSON.parse(line.slice(5)) as unknown)
    : [JSON.parse(text) as unknown];
  if (documents.length === 0) return { kind: 'failed', reason: 'its stream has no events' } as const;
  return { kind: 'probed', streams, callsTools: documents.some(hasToolCall) } as const;
}

function hasToolCall(document: unknown): boolean {
  const { choices } = (document ?? {}) as { choices?: unknown };
  const [choice] = Array.isArray(choices) ? (choices as unknown[]) : [];
  const { delta, message } = (choice ?? {}) as { delta?: { tool_calls?: unknown }; message?: { tool_calls?: unknown } };
  const calls = (delta ?? message)?.tool_calls;
  return Array.isArray(calls) && calls.length > 0;
}

async function ask(upstream: Upstream, asked: object, signal: AbortSignal): Promise<IncomingMessage> {
  const { baseUrl, key } = upstream;
  const url = new URL(`${baseUrl}/chat/completions`);
  const body = JSON.stringify(asked);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  const { request } = url.protocol === 'https:' ? https : http;
  const lookup = await lookupFor(upstream, url, signal);
  const sent = request(url, { method: 'POST', headers, signal, lookup, agent: agentFor(url) });
  sent.end(body);
  const [response] = (await once(sent, 'response', { signal })) as [IncomingMessage];
  return response;
}
