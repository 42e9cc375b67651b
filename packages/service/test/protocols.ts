/** Test support: requests to the gateway in each of its four protocols, as their clients send them. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { FakeTurn } from '../../../test/fakes/models.ts';
import type { TestGateway } from './gateway.ts';

const user = [{ role: 'user', content: 'look' }];

/** The four protocols. Each has a path, a request body, the header in which clients send the token, and an SDK of a client. */
export const protocols = [
  {
    name: 'anthropic',
    modelId: 'anthropic/claude-opus-5-5',
    path: '/api/v1/gateway/anthropic/v1/messages',
    body: { model: 'claude-opus-5-5', max_tokens: 100, stream: true, messages: user },
    header: (token: string) => ({ 'x-api-key': token, 'anthropic-version': '2023-06-01' }),
    sdk: (base: string, token: string) =>
      createAnthropic({ baseURL: `${base}/api/v1/gateway/anthropic/v1`, apiKey: token })('claude-opus-5-5'),
    /** The prices, in the order of the members, are 4, 20, 0.2 and 5 USD per million tokens. */
    cost: { input: 0.0004, output: 0.0006, cacheRead: 0.000008, cacheWrite: 0.000035 },
    whole: { cacheWrite: 7, input: 100 },
    errorOf: (body: unknown) => (body as { error: { message: string } }).error.message,
  },
  {
    name: 'openai responses',
    modelId: 'openai/gpt-6.1-sol',
    path: '/api/v1/gateway/openai/v1/responses',
    body: { model: 'gpt-6.1-sol', stream: true, input: user },
    header: (token: string) => ({ authorization: `Bearer ${token}` }),
    sdk: (base: string, token: string) =>
      createOpenAI({ baseURL: `${base}/api/v1/gateway/openai/v1`, apiKey: token }).responses('gpt-6.1-sol'),
    cost: { input: 0.0002, output: 0.0003, cacheRead: 0.000004, cacheWrite: 0.0000175 },
    whole: { cacheWrite: 7, input: 100 },
    errorOf: (body: unknown) => (body as { error: { message: string } }).error.message,
  },
  {
    name: 'google',
    modelId: 'google/gemini-2.5-flash',
    path: '/api/v1/gateway/google/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'look' }] }] },
    header: (token: string) => ({ 'x-goog-api-key': token }),
    sdk: (base: string, token: string) =>
      createGoogle({ baseURL: `${base}/api/v1/gateway/google/v1beta`, apiKey: token })('gemini-2.5-flash'),
    // Google does not report cache writes, so the tokens that are written to the cache count as input tokens.
    cost: { input: 0.0000321, output: 0.000075, cacheRead: 0.0000012, cacheWrite: 0 },
    whole: { cacheWrite: 0, input: 107 },
    errorOf: (body: unknown) => (body as { error: { message: string } }).error.message,
  },
  {
    name: 'openai-compatible',
    modelId: 'local/fake-local',
    path: '/api/v1/gateway/local/v1/chat/completions',
    body: { model: 'fake-local', stream: true, messages: user },
    header: (token: string) => ({ authorization: `Bearer ${token}` }),
    // The client need not set `includeUsage`, because the gateway itself requests the usage.
    sdk: (base: string, token: string) =>
      createOpenAICompatible({ name: 'local', baseURL: `${base}/api/v1/gateway/local/v1`, apiKey: token })(
        'fake-local',
      ),
    cost: null,
    whole: { cacheWrite: 7, input: 100 },
    errorOf: (body: unknown) => (body as { error: { message: string } }).error.message,
  },
];
export type Protocol = (typeof protocols)[number];

export const toolTurns: readonly FakeTurn[] = [
  {
    thinking: 'What would a person do?',
    text: ['I will ', 'look.'],
    toolCalls: [{ name: 'shell', input: { command: 'printf "a b" && echo ünï' } }],
    usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 7, reasoning: 5 },
  },
  { text: ['It says ', 'a b.'], usage: { input: 50, output: 8 } },
];

/** Sends a request and returns as soon as the headers arrive. */
export function send(
  gateway: TestGateway,
  protocol: Protocol,
  changes: { headers?: Record<string, string>; body?: unknown; path?: string; method?: string } = {},
) {
  const request = httpRequest(`${gateway.url}${changes.path ?? protocol.path}`, {
    method: changes.method ?? 'POST',
    headers: {
      'content-type': 'application/json',
      ...(changes.headers ?? protocol.header(gateway.token(protocol.modelId))),
    },
    agent: false,
  });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
  const body = changes.body ?? protocol.body;
  request.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  return { request, response };
}

/** Reads the whole answer. `cut`: true if the connection ended before the end of the answer. `everything`: the headers and the body as text. */
export async function all(
  response: IncomingMessage,
): Promise<{ status: number; text: string; cut: boolean; everything: string }> {
  const parts: Buffer[] = [];
  let cut = false;
  try {
    for await (const part of response) parts.push(part as Buffer);
  } catch {
    cut = true;
  }
  const text = Buffer.concat(parts).toString('utf8');
  return {
    status: response.statusCode ?? 0,
    text,
    cut: cut || !response.complete,
    everything: `${response.rawHeaders.join('\n')}\n${text}`,
  };
}
