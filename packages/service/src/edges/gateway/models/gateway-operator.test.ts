import { once } from 'node:events';
import { type AddressInfo, createServer, type LookupFunction, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { fakeModelKeys } from '../../../../../../test/fakes/models.ts';
import { startTestGateway, type TestGateway } from '../../../../test/gateway.ts';
import { expectNoSecret } from '../../../../test/secrets.ts';
import type { UpstreamTimeouts } from './upstream.ts';

let gateway: TestGateway;
const servers: Server[] = [];
afterEach(async () => {
  await gateway.close();
  for (const server of servers.splice(0)) server.close();
});

const modelId = 'anthropic/claude-opus-5-5';
const path = '/api/v1/gateway/anthropic/v1/messages';
const body = { model: 'claude-opus-5-5', max_tokens: 100, stream: true, messages: [{ role: 'user', content: 'look' }] };

function ask(
  changes: {
    body?: unknown;
    path?: string;
    modelId?: string;
    headers?: Record<string, string>;
    method?: string;
    signal?: AbortSignal;
  } = {},
) {
  const init = changes.method === 'GET' ? {} : { body: JSON.stringify(changes.body ?? body) };
  return fetch(`${gateway.url}${changes.path ?? path}`, {
    method: changes.method ?? 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${gateway.token(changes.modelId ?? modelId)}`,
      ...changes.headers,
    },
    ...init,
    ...(changes.signal && { signal: changes.signal }),
  });
}

/** A server that handles each connection with `onConnection`. */
async function rawServer(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createServer(onConnection);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const timeouts: UpstreamTimeouts = { connectMs: 1_000, reachMs: 1_000, silenceMs: 60_000, hangUpMs: 1_000 };

describe('the model gateway', () => {
  it("converts the provider's 401 into an error that names the setting and shows no part of the key", async () => {
    gateway = await startTestGateway({ env: { RUNYARD_ANTHROPIC_API_KEY: 'sk-ant-wrong-key-of-the-operator' } });
    const response = await ask();
    const text = await response.text();
    expect(response.status).toBe(403);
    expect(text).toContain('RUNYARD_ANTHROPIC_API_KEY');
    expect(text + gateway.log()).not.toContain('sk-ant-wrong');
  });

  it('answers a request that it cannot send with a fault of its own, which clients do not repeat', async () => {
    gateway = await startTestGateway();
    const target = gateway.models.target(modelId);
    if (target === undefined) throw new Error('the model is not configured');
    const upstream = { ...target.upstream, key: 'sk-ant-first\nsk-ant-second' };
    await gateway.close();
    gateway = await startTestGateway({ models: { target: () => ({ ...target, upstream }) } });
    const response = await ask();
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).toContain('the gateway could not send the request to the provider');
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(response.headers.get('x-runyard-error-code')).toBe('internal_error');
    expect(gateway.log()).toContain('Invalid character in header content');
    expect(text + gateway.log()).not.toContain('sk-ant-');
  });

  it('redacts the provider key if an error of the provider quotes the key', async () => {
    gateway = await startTestGateway();
    gateway.fake.misbehave({ kind: 'status', status: 400, message: `bad key ${fakeModelKeys.anthropic}!` });
    const text = await (await ask()).text();
    expect(text).toContain('bad key [redacted]!');
  });

  it('answers 502 with endpoint and reason if the provider cannot be reached, and the client does not try again', async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const env = { RUNYARD_ANTHROPIC_BASE_URL: `http://user:secret@127.0.0.1:${port}/path` };
    gateway = await startTestGateway({ env, timeouts });
    const response = await ask();
    const text = await response.text();
    expect(response.status).toBe(502);
    expect(text).toContain(`127.0.0.1:${port} cannot be reached: connection refused (ECONNREFUSED)`);
    expect(text).not.toMatch(/user|secret|path/);
    expect(response.headers.get('x-should-retry')).toBe('false');
    expect(response.headers.get('x-runyard-error-code')).toBe('resource_unavailable');
    expect(await gateway.usage(1)).toMatchObject({ status: 502 });
  });

  it('connects again when the first try reached no provider, and forwards the answer', async () => {
    let tries = 0;
    const lookup: LookupFunction = (_name, options, done) => {
      tries += 1;
      if (tries === 1) done(Object.assign(new Error('no name'), { code: 'EAI_AGAIN' }), []);
      else if (options.all) done(null, [{ address: '127.0.0.1', family: 4 }]);
      else done(null, '127.0.0.1', 4);
    };
    const url = await rawServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'));
    });
    const env = { RUNYARD_ANTHROPIC_BASE_URL: url.replace('127.0.0.1', 'provider.test') };
    gateway = await startTestGateway({ env, lookup });
    expect(await (await ask()).text()).toBe('{}');
    expect(tries).toBe(2);
  });

  it('answers 504 when no connection is made in time, and waits for a slow provider', async () => {
    const silentTls = await rawServer(() => {});
    const env = { RUNYARD_ANTHROPIC_BASE_URL: silentTls.replace('http:', 'https:') };
    gateway = await startTestGateway({ env, timeouts: { ...timeouts, connectMs: 100, reachMs: 300 } });
    const response = await ask();
    expect(response.status).toBe(504);
    expect(await response.text()).toContain('cannot be reached: no connection in time');
    await gateway.close();
    gateway = await startTestGateway({ timeouts: { ...timeouts, connectMs: 1_000, reachMs: 1_000 } });
    gateway.fake.misbehave({ kind: 'slow', delayMs: 1_100 });
    expect((await ask()).status).toBe(200);
  });

  it('answers 502 when the provider does not speak HTTP', async () => {
    const url = await rawServer((socket) => socket.end('220 mail.example ready\r\n'));
    gateway = await startTestGateway({ env: { RUNYARD_ANTHROPIC_BASE_URL: url }, timeouts });
    const response = await ask();
    expect(response.status).toBe(502);
    expect(await response.text()).toMatch(/127\.0\.0\.1:\d+ broke the connection off/);
    expect(response.headers.get('x-runyard-error-code')).toBe('resource_unavailable');
  });

  it('repeats a request if the provider closes the reused connection while the gateway sends the request', async () => {
    let connections = 0;
    const url = await rawServer((socket) => {
      connections += 1;
      let requests = 0;
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        if (!bytes.includes('POST')) return;
        requests += 1;
        // The server closes the connection at its second request.
        if (requests > 1) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
      });
    });
    gateway = await startTestGateway({ env: { RUNYARD_ANTHROPIC_BASE_URL: url } });
    for (let each = 1; each <= 3; each += 1) {
      expect((await ask()).status).toBe(200);
      await gateway.usage(each);
    }
    expect(connections).toBeGreaterThan(1);
  });

  it('checks the admission before it sends a request', async () => {
    gateway = await startTestGateway({
      admit: async (holder) =>
        holder.teamId === 'team'
          ? { ok: false, status: 429, message: 'the budget of the run is used up', retryAfterSeconds: 60 }
          : { ok: true },
    });
    const response = await ask();
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('60');
    expect(await response.text()).toContain('used up');
    expect(gateway.fake.requests).toHaveLength(0);
    expect(gateway.usages).toHaveLength(0);
  });

  it('finishes an answer whose usage cannot be stored, and logs the failure', async () => {
    gateway = await startTestGateway({ recordUsage: () => Promise.reject(new Error('the database is down')) });
    const response = await ask();
    expect(await response.text()).toContain('message_stop');
    await expect.poll(() => gateway.log()).toContain('the database is down');
  });

  it.each([
    ['POST', '/api/v1/gateway/anthropic/v1/messages/batches'],
    ['GET', '/api/v1/gateway/anthropic/v1/files'],
    ['POST', '/api/v1/gateway/anthropic/v1/messages/../files'],
    ['POST', '/api/v1/gateway/anthropic/v1/%6Dessages'],
    ['GET', '/api/v1/gateway/anthropic/v1/messages'],
    ['GET', '/api/v1/gateway/openai/v1/responses/resp_1'],
    ['POST', '/api/v1/gateway/openai/v1/files'],
    ['POST', '/api/v1/gateway/google/v1beta/models/a%2F..%2Fb:generateContent'],
    ['POST', '/api/v1/gateway/google/v1beta/cachedContents'],
    ['POST', '/api/v1/gateway/elsewhere/v1/messages'],
  ])('has no %s %s', async (method, wrong) => {
    gateway = await startTestGateway();
    const response = await ask({ method, path: wrong });
    expect(response.status).toBe(404);
    expect(gateway.fake.requests).toHaveLength(0);
  });

  it('forwards requests that count tokens, and records no usage for them', async () => {
    gateway = await startTestGateway();
    const { stream: _stream, ...count } = body;
    const response = await ask({ path: `${path}/count_tokens`, body: count });
    // The fake provider has no endpoint that counts tokens, so it answers 404.
    expect(response.status).toBe(404);
    expect(gateway.usages).toHaveLength(0);
  });

  it('takes the run token from the query, as clients of Google send it, and keeps the token out of the log', async () => {
    gateway = await startTestGateway();
    const id = 'google/gemini-2.5-flash';
    const url = `/api/v1/gateway/google/v1beta/models/gemini-2.5-flash:generateContent?key=${encodeURIComponent(gateway.token(id))}`;
    const response = await ask({
      path: url,
      body: { contents: [{ parts: [{ text: 'x' }] }] },
      headers: { authorization: '' },
    });
    expect(response.status).toBe(200);
    expect((await gateway.fake.request(1)).query).toBe('');
    await gateway.usage(1);
    expect(gateway.log()).not.toContain('run-token');
  });

  it('keeps other options of a stream when it adds the option that requests the usage', async () => {
    gateway = await startTestGateway();
    const local = {
      model: 'fake-local',
      stream: true,
      messages: body.messages,
      stream_options: { include_usage: false, extra: 1 },
    };
    const response = await ask({
      modelId: 'local/fake-local',
      path: '/api/v1/gateway/local/v1/chat/completions',
      body: local,
    });
    await response.text();
    expect((await gateway.fake.request(1)).body.stream_options).toEqual({ include_usage: true, extra: 1 });
    expect(await gateway.usage(1)).toMatchObject({ inputTokens: 140, outputTokens: 10, costUsd: null });
  });

  it('buffers little of a long answer that the client does not read', async () => {
    gateway = await startTestGateway();
    const bytes = 64 * 1024 * 1024;
    gateway.fake.misbehave({ kind: 'flood', bytes });
    const abort = new AbortController();
    const response = await ask({ signal: abort.signal });
    const upstream = await gateway.fake.request(1);
    // Do not read the answer. The socket buffers become full, so the gateway must stop reading from the provider.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = upstream.sent() > 0 && upstream.sent() === before;
          before = upstream.sent();
          return still;
        },
        { interval: 100, timeout: 60_000 },
      )
      .toBe(true);
    expect(upstream.sent() * 100).toBeLessThan(bytes / 2);
    abort.abort();
    await response.body?.cancel().catch(() => {});
    // Read the whole answer. Without a client, the gateway reads for 30 s at most, which may not be enough on a busy machine.
    expect(['complete', 'client_gone']).toContain(await upstream.end);
  });

  it('cuts answers in flight when the service closes, and records their tokens', async () => {
    gateway = await startTestGateway({ drainMs: 50 });
    gateway.fake.misbehave({ kind: 'hold', afterPieces: 3 });
    const response = await ask();
    const reading = response.text().then(
      () => 'complete',
      () => 'cut',
    );
    await gateway.close();
    expect(await reading).toBe('cut');
    expect(gateway.usages).toHaveLength(1);
    gateway = await startTestGateway();
  });

  it('keeps every secret of the operator out of the log', async () => {
    gateway = await startTestGateway();
    gateway.fake.misbehave({ kind: 'status', status: 500, message: fakeModelKeys.anthropic });
    await (await ask()).text();
    await (await ask()).text();
    await gateway.usage(2);
    expectNoSecret(gateway.log());
  });
});
