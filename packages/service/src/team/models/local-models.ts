import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import { z } from 'zod';
import { connectionReason } from './connection-reason.ts';
import type { Upstream } from './providers.ts';

const Answer = z.object({ data: z.array(z.object({ id: z.string().min(1).max(200) })).max(5000) });

/** The models that an OpenAI-compatible endpoint lists, or the reason why it lists none, as a sentence without secrets. */
export type LocalModels = { ok: true; ids: string[] } | { ok: false; reason: string };

const maxBytes = 4 * 1024 * 1024;

/** Asks `GET {base URL}/models`. Never throws, follows no redirect, reads at most 4 MB. */
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

/** node:http, as the gateway uses it: fetch refuses some ports without saying so. */
async function getModels({ baseUrl, key }: Upstream, signal: AbortSignal): Promise<IncomingMessage> {
  const url = new URL(`${baseUrl}/models`);
  const headers = { accept: 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  const { get } = url.protocol === 'https:' ? https : http;
  const request = get(url, { headers, signal, lookup: systemNames.lookup, agent: false });
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
