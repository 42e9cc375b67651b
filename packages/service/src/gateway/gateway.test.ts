import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { FakeTurn } from '../../../../test/fakes/models.ts';
import { secrets, startTestGateway, type TestGateway } from './test-gateway.ts';

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await startTestGateway({ drainMs: 200 });
});
afterEach(() => gateway.close());

const user = [{ role: 'user', content: 'look' }];

/** The four protocols: path, a body for the model, the header that its clients put the token in, and one SDK each. */
const protocols = [
  {
    name: 'anthropic',
    modelId: 'anthropic/claude-opus-5-5',
    path: '/api/v1/gateway/anthropic/v1/messages',
    body: { model: 'claude-opus-5-5', max_tokens: 100, stream: true, messages: user },
    header: (token: string) => ({ 'x-api-key': token, 'anthropic-version': '2023-06-01' }),
    sdk: (token: string) =>
      createAnthropic({ baseURL: `${gateway.url}/api/v1/gateway/anthropic/v1`, apiKey: token })('claude-opus-5-5'),
    /** 4, 20, 0.2 and 5 USD per million. */
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
    sdk: (token: string) =>
      createOpenAI({ baseURL: `${gateway.url}/api/v1/gateway/openai/v1`, apiKey: token }).responses('gpt-6.1-sol'),
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
    sdk: (token: string) =>
      createGoogle({ baseURL: `${gateway.url}/api/v1/gateway/google/v1beta`, apiKey: token })('gemini-2.5-flash'),
    // Google tells of no cache writes: what was written is a part of the prompt.
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
    // Without includeUsage: the gateway asks for the usage by itself.
    sdk: (token: string) =>
      createOpenAICompatible({ name: 'local', baseURL: `${gateway.url}/api/v1/gateway/local/v1`, apiKey: token })(
        'fake-local',
      ),
    cost: null,
    whole: { cacheWrite: 7, input: 100 },
    errorOf: (body: unknown) => (body as { error: { message: string } }).error.message,
  },
];
type Protocol = (typeof protocols)[number];

const toolTurns: readonly FakeTurn[] = [
  {
    thinking: 'What would a person do?',
    text: ['I will ', 'look.'],
    toolCalls: [{ name: 'shell', input: { command: 'printf "a b" && echo ünï' } }],
    usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 7, reasoning: 5 },
  },
  { text: ['It says ', 'a b.'], usage: { input: 50, output: 8 } },
];

/** Sends a request and answers as soon as the headers are there. */
function send(
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

/** All of an answer; `cut` where it did not end as its encoding says. */
async function all(
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

const expectNoSecret = (text: string): void => {
  for (const secret of secrets) expect(text).not.toContain(secret);
};

describe.each(protocols)('the model gateway for $name', (protocol) => {
  it('serves the real SDK with tool calls and counts every kind of token', async () => {
    gateway.fake.script(toolTurns);
    const ran: string[] = [];
    const shell = tool({
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => {
        ran.push(command);
        return 'a b';
      },
    });
    const model = protocol.sdk(gateway.token(protocol.modelId));
    const result = streamText({ model, prompt: 'look', tools: { shell }, stopWhen: stepCountIs(4), maxRetries: 0 });
    expect(await result.text).toBe('It says a b.');
    expect(ran).toEqual(['printf "a b" && echo ünï']);
    const [first, second] = [await gateway.usage(1), await gateway.usage(2)];
    expect(first).toMatchObject({
      modelId: protocol.modelId,
      runId: `run of ${protocol.modelId}`,
      executionId: 'execution',
      status: 200,
      inputTokens: protocol.whole.input,
      outputTokens: 30,
      cacheReadTokens: 40,
      cacheWriteTokens: protocol.whole.cacheWrite,
    });
    expect(second).toMatchObject({ inputTokens: 50, outputTokens: 8, cacheReadTokens: 0, cacheWriteTokens: 0 });
    if (protocol.cost === null) {
      expect(first.costUsd).toBeNull();
      expect(first.breakdown).toBeNull();
    } else {
      for (const [kind, usd] of Object.entries(protocol.cost)) {
        expect(first.breakdown?.[kind as keyof typeof protocol.cost]).toBeCloseTo(usd, 12);
      }
      expect(first.costUsd).toBeCloseTo(
        Object.values(protocol.cost).reduce((sum, usd) => sum + usd),
        12,
      );
    }
    expect(first.requestId).not.toBe(second.requestId);
    expect(gateway.usages).toHaveLength(2);
  });

  it('counts an answer that is not streamed', async () => {
    gateway.fake.script(toolTurns);
    const body: Record<string, unknown> = { ...protocol.body };
    delete body.stream;
    const path = protocol.path.replace('streamGenerateContent?alt=sse', 'generateContent');
    const { text, status } = await all(await send(protocol, { body, path }).response);
    expect(status).toBe(200);
    expect(JSON.parse(text)).toBeTypeOf('object');
    expect(await gateway.usage(1)).toMatchObject({
      inputTokens: protocol.whole.input,
      outputTokens: 30,
      cacheReadTokens: 40,
    });
  });

  it('passes each piece on before the next one is sent', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 3 });
    const response = await send(protocol).response;
    const seen: string[] = [];
    const first = Promise.withResolvers<void>();
    response.on('data', (bytes: Buffer) => {
      seen.push(bytes.toString('utf8'));
      first.resolve();
    });
    await first.promise;
    const upstream = await gateway.fake.request(1);
    expect(upstream.sent()).toBeLessThanOrEqual(3);
    const ended = new Promise((resolve) => response.once('end', resolve));
    gateway.fake.release();
    await ended;
    expect(seen.length).toBeGreaterThan(1);
  });

  it('hands the real credential to the provider and nothing of it, nor of the operator, to the sandbox', async () => {
    const headers = {
      ...protocol.header(gateway.token(protocol.modelId)),
      cookie: 'a=b',
      'x-forwarded-for': '1.2.3.4',
      authorization2: 'x',
    };
    const { everything } = await all(await send(protocol, { headers }).response);
    const upstream = await gateway.fake.request(1);
    expect(secrets.some((secret) => JSON.stringify(upstream.headers).includes(secret))).toBe(true);
    expect(JSON.stringify(upstream.headers) + upstream.query).not.toContain('run-token');
    expect(upstream.headers).not.toHaveProperty('cookie');
    expect(upstream.headers).not.toHaveProperty('x-forwarded-for');
    expectNoSecret(everything);
    for (const trace of ['of-the-operator', 'ratelimit', 'set-cookie', 'req_fake', 'server-timing']) {
      expect(everything.toLowerCase()).not.toContain(trace);
    }
    await gateway.usage(1);
    expectNoSecret(gateway.log());
    expect(gateway.log()).not.toContain('run-token');
  });

  it.each([429, 500, 529])('passes %i on with its body and Retry-After', async (status) => {
    gateway.fake.misbehave({ kind: 'status', status, retryAfterSeconds: 7, message: 'not now, please' });
    const response = await send(protocol).response;
    expect(response.headers['retry-after']).toBe('7');
    expect(response.headers['content-type']).toContain('application/json');
    const { text, everything } = await all(response);
    expect(response.statusCode).toBe(status);
    expect(protocol.errorOf(JSON.parse(text))).toBe('not now, please');
    expectNoSecret(everything);
    expect(everything).not.toContain('of-the-operator');
    expect(await gateway.usage(1)).toMatchObject({ status, inputTokens: 0, outputTokens: 0 });
  });

  it('passes a cut in mid-stream on as a cut, with all that came before', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'cut', afterPieces: 3 });
    const answer = await all(await send(protocol).response);
    expect(answer.status).toBe(200);
    expect(answer.cut).toBe(true);
    expect(answer.text).not.toBe('');
    const usage = await gateway.usage(1);
    expect(usage.status).toBe(502);
    if (protocol.name === 'anthropic')
      expect(usage).toMatchObject({ inputTokens: 100, cacheReadTokens: 40, cacheWriteTokens: 7, outputTokens: 1 });
    if (protocol.name === 'google')
      expect(usage).toMatchObject({ inputTokens: 107, cacheReadTokens: 40, outputTokens: 5 });
  });

  it('aborts the request to the provider when the client goes, and accounts for it', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 4 });
    const { request, response } = send(protocol);
    await response;
    const upstream = await gateway.fake.request(1);
    request.on('error', () => {});
    request.destroy();
    expect(await upstream.end).toBe('client_gone');
    expect(await gateway.usage(1)).toMatchObject({ status: 499 });
    expect(gateway.usages).toHaveLength(1);
  });

  it('aborts the request to the provider when the client goes before the answer', async () => {
    gateway.fake.misbehave({ kind: 'silent' });
    const { request, response } = send(protocol);
    response.catch(() => {});
    const upstream = await gateway.fake.request(1);
    request.destroy();
    expect(await upstream.end).toBe('client_gone');
    expect(await gateway.usage(1)).toMatchObject({ status: 499, inputTokens: 0 });
  });

  it('passes slow streams, garbage and error events on untouched and survives them', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'slow', delayMs: 5 });
    gateway.fake.misbehave({ kind: 'garbage', afterPieces: 2 });
    gateway.fake.misbehave({ kind: 'error_event', afterPieces: 3 });
    const slow = await all(await send(protocol).response);
    const garbage = await all(await send(protocol).response);
    const error = await all(await send(protocol).response);
    expect([slow.status, garbage.status, error.status]).toEqual([200, 200, 200]);
    expect(garbage.text).toContain('{"not json');
    expect(error.text).toContain('Overloaded');
    expect(await gateway.usage(2)).toMatchObject({ outputTokens: 30, cacheReadTokens: 40 });
    expect((await gateway.usage(1)).outputTokens).toBe(30);
  });

  it('counts a compressed answer and hands it on in clear', async () => {
    gateway.fake.script(toolTurns);
    gateway.fake.misbehave({ kind: 'gzip' });
    const response = await send(protocol).response;
    expect(response.headers['content-encoding']).toBeUndefined();
    expect((await all(response)).text).toContain('data: ');
    expect(await gateway.usage(1)).toMatchObject({ outputTokens: 30, cacheReadTokens: 40 });
    expect((await gateway.fake.request(1)).headers['accept-encoding']).toBe('identity');
  });

  it('follows no redirect', async () => {
    gateway.fake.misbehave({ kind: 'redirect', location: `${gateway.fake.url}/elsewhere` });
    const response = await send(protocol).response;
    const { status, text } = await all(response);
    expect(status).toBe(502);
    expect(response.headers.location).toBeUndefined();
    expect(text).toContain('BASE_URL');
    expect(gateway.fake.requests).toHaveLength(1);
  });

  it('refuses another model than the one of the run', async () => {
    const body = { ...protocol.body, ...('model' in protocol.body && { model: 'gpt-6-astra' }) };
    const path = protocol.path.replace('gemini-2.5-flash', 'gemini-4-carbon');
    const { status, text } = await all(await send(protocol, { body, path }).response);
    expect(status).toBe(403);
    expect(protocol.errorOf(JSON.parse(text))).toContain('may not use');
    expect(gateway.fake.requests).toHaveLength(0);
    expect(gateway.usages).toHaveLength(0);
  });

  it('is not misled by a model that is named twice', async () => {
    const twice = JSON.stringify(protocol.body).replace('{', '{"model":"dearer-model",');
    const answer = await all(await send(protocol, { body: twice }).response);
    // Google names the model in the path and nowhere else.
    expect(answer.status).toBe(protocol.name === 'google' ? 403 : 200);
    for (const request of gateway.fake.requests) expect(JSON.stringify(request.body)).not.toContain('dearer-model');
  });

  it.each([
    ['no token', () => ({})],
    ['a wrong token', (p: Protocol) => p.header('rubbish')],
    ['a token that is too long', (p: Protocol) => p.header('x'.repeat(2000))],
  ])('refuses %s with 401 in the format of the provider', async (_name, headers) => {
    const { status, text } = await all(await send(protocol, { headers: headers(protocol) }).response);
    expect(status).toBe(401);
    expect(protocol.errorOf(JSON.parse(text))).toContain('run token');
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it("refuses the token of a run with another provider's model, and of a runbook", async () => {
    const other = protocol.modelId.startsWith('anthropic') ? 'openai/gpt-6.1-sol' : 'anthropic/claude-opus-5-5';
    for (const modelId of [other, 'runbook']) {
      const { status } = await all(await send(protocol, { headers: protocol.header(gateway.token(modelId)) }).response);
      expect(status).toBe(403);
    }
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it.each([
    ['priority', { service_tier: 'priority' }],
    ['fast mode', { speed: 'fast' }],
    ['fallback models', { fallbacks: [{ model: 'dearer-model' }] }],
    ['answers in the background', { background: true }],
    ['tools with another model', { tools: [{ type: 'advisor', name: 'advisor', model: 'dearer-model' }] }],
  ])('refuses %s', async (_name, members) => {
    const { status } = await all(await send(protocol, { body: { ...protocol.body, ...members } }).response);
    expect(status).toBe(403);
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('answers 413 for a body over 32 MB', async () => {
    const body = Buffer.alloc(32 * 1024 * 1024 + 1, 0x20);
    const { status, text } = await all(await send(protocol, { body }).response);
    expect(status).toBe(413);
    expect(protocol.errorOf(JSON.parse(text))).toContain('larger');
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it.each(['{', '[]', 'null', '"x"', ''])('answers 400 for the body %j', async (body) => {
    expect((await all(await send(protocol, { body }).response)).status).toBe(400);
  });

  it('lists the model of the run and no other, without asking the provider', async () => {
    const path = protocol.path.replace(/(gateway\/[a-z]+\/v1(beta)?)\/.*/, '$1/models');
    const { status, text } = await all(await send(protocol, { path, method: 'GET', body: '' }).response);
    expect(status).toBe(200);
    expect(text).toContain(protocol.modelId.split('/')[1]);
    expect(gateway.fake.requests).toHaveLength(0);
  });
});

describe.each(protocols)('an impatient model gateway for $name', (protocol) => {
  beforeEach(async () => {
    await gateway.close();
    gateway = await startTestGateway({ timeouts: { connectMs: 300, silenceMs: 300 } });
  });

  it('answers 504 where the provider does not answer', async () => {
    gateway.fake.misbehave({ kind: 'silent' });
    const { status, text } = await all(await send(protocol).response);
    expect(status).toBe(504);
    expect(protocol.errorOf(JSON.parse(text))).toContain('did not answer in time');
    expect(await (await gateway.fake.request(1)).end).toBe('client_gone');
  });

  it('breaks off a stream in which the provider falls silent', async () => {
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 2 });
    const answer = await all(await send(protocol).response);
    expect(answer.cut).toBe(true);
    expect((await gateway.usage(1)).status).toBe(502);
    gateway.fake.release();
  });
});
