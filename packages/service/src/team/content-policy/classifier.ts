/** Asks the HTTP service of the operator (the classifier) whether texts are allowed. */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import https from 'node:https';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';
import { z } from 'zod';
import type { PolicyText } from './pattern-thread.ts';
import type { ClassifierConfig } from './policy-file.ts';

const Answer = z.object({ allowed: z.boolean(), reason: z.string().optional() });

/**
 * `failed`: no answer arrived in time, or the answer could not be read. `reason` is for the log and contains no text of the request.
 */
export type ClassifierResult =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'refused'; readonly reason: string | undefined }
  | { readonly kind: 'failed'; readonly reason: string };

const maxAnswerBytes = 64 * 1024;
const maxReasonLength = 500;

/** Matches characters that could change how a terminal or a log shows the text. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Asks the classifier about the texts. Never throws, follows no redirect, and reads at most 64 KB. */
export async function askClassifier(
  config: ClassifierConfig,
  key: string | undefined,
  texts: readonly PolicyText[],
): Promise<ClassifierResult> {
  const timeoutMs = config.timeout_seconds * 1000;
  const failed = (reason: string): ClassifierResult => ({ kind: 'failed', reason });
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await send(config.url, key, JSON.stringify({ texts }), signal);
    if (response.statusCode !== 200) {
      response.destroy();
      return failed(`it answered ${response.statusCode}`);
    }
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of response as AsyncIterable<Buffer>) {
      size += part.byteLength;
      if (size > maxAnswerBytes) return failed('its answer is larger than 64 KB');
      parts.push(part);
    }
    const answer = Answer.safeParse(JSON.parse(Buffer.concat(parts).toString('utf8')));
    if (!answer.success) return failed('its answer has no member "allowed" with true or false');
    if (answer.data.allowed) return { kind: 'allowed' };
    const reason = answer.data.reason?.replace(unprintable, ' ').trim().slice(0, maxReasonLength);
    return { kind: 'refused', reason: reason || undefined };
  } catch (error) {
    if (error instanceof SyntaxError) return failed('its answer is not JSON');
    if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError'))
      return failed(`it did not answer within ${config.timeout_seconds} s`);
    const code = (error as NodeJS.ErrnoException).code;
    return failed(`it cannot be reached${typeof code === 'string' ? ` (${code})` : ''}`);
  }
}

async function send(
  address: string,
  key: string | undefined,
  body: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const url = new URL(address);
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  const options = { method: 'POST', headers, signal, lookup: systemNames.lookup, agent: agentFor(url) } as const;
  const request = (url.protocol === 'https:' ? https : http).request(url, options);
  request.end(body);
  const [response] = (await once(request, 'response', { signal })) as [IncomingMessage];
  // The signal may also have aborted the reading of the body, which then fails with the error of the signal.
  signal.addEventListener('abort', () => response.destroy(signal.reason as Error), { once: true });
  return response;
}
