/** Tests the client over real sockets against servers that cut their answers, stop in the middle or answer slowly. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ApiError, ConnectionError, createClient } from './index.ts';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let close: (() => Promise<unknown>) | undefined;
afterEach(async () => {
  await close?.();
  close = undefined;
});

/** Starts a server that gives the answers in order and then repeats the last answer. */
async function serve(...answers: Answer[]) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    answers[Math.min(requests.length, answers.length) - 1]?.(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

const models = JSON.stringify({ default_model_id: 'runbook', models: [] });
const created = JSON.stringify({ run_id: 'r', task_id: 'r', state: 'QUEUED' });

/** Sends the first bytes of the body, then closes the connection. */
const cut =
  (body: string): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
    response.write(body.slice(0, 10), () => response.destroy());
  };
/**
 * Sends the first bytes without a Content-Length, then closes the connection. The client can find out that bytes are missing only because
 * the JSON is incomplete.
 */
const cutWithoutLength =
  (body: string): Answer =>
  (response) => {
    response.socket?.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${body.slice(0, 10)}`);
  };
const whole =
  (body: string): Answer =>
  (response) =>
    response.end(body);
/** Sends the body byte by byte. */
const slowly =
  (body: string, everyMs: number): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const rest = [...body];
    const timer = setInterval(() => {
      const next = rest.shift();
      if (next !== undefined) return response.write(next);
      clearInterval(timer);
      return response.end();
    }, everyMs);
    response.on('close', () => clearInterval(timer));
  };
const silent: Answer = () => undefined;
const silentAfterTheBeginning: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{');
};

describe('the client, when the body of an answer is cut,', () => {
  test.each([
    ['in the middle', cut],
    ['and has no Content-Length', cutWithoutLength],
  ])('repeats the request if the body is cut %s', async (_, cutOff) => {
    const { baseUrl, requests } = await serve(cutOff(models), whole(models));
    expect((await createClient({ baseUrl }).listModels()).default_model_id).toBe('runbook');
    expect(requests).toHaveLength(2);
  });

  test('repeats a create request with the same Idempotency-Key', async () => {
    const keys: unknown[] = [];
    const note =
      (then: Answer): Answer =>
      (response, request) => {
        keys.push(request.headers['idempotency-key']);
        then(response, request);
      };
    const { baseUrl } = await serve(note(cut(created)), note(whole(created)));
    expect((await createClient({ baseUrl }).createRun({ body: { prompt: 'a' } })).run_id).toBe('r');
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  test('throws ConnectionError if the request must not be repeated, or if each answer is cut', async () => {
    const { baseUrl, requests } = await serve(cut(models));
    const client = createClient({ baseUrl, retries: 1 });
    await expect(client.cancelRun({ params: { runId: 'r' } })).rejects.toThrow(ConnectionError);
    expect(requests).toHaveLength(1);
    await expect(client.listModels()).rejects.toThrow(ConnectionError);
    expect(requests).toHaveLength(3);
  });
});

describe('the time-out of the client', () => {
  test('aborts a request that gets no answer', async () => {
    const { baseUrl, requests } = await serve(silent);
    const client = createClient({ baseUrl, timeoutMs: 1_000, retries: 1 });
    await expect(client.listModels()).rejects.toThrow('nothing came for 1000 ms');
    await expect.poll(() => requests.length).toBe(2);
  });

  test('aborts a body that stops in the middle, and repeats the request', async () => {
    const { baseUrl } = await serve(silentAfterTheBeginning, whole(models));
    const client = createClient({ baseUrl, timeoutMs: 1_000 });
    expect((await client.listModels()).default_model_id).toBe('runbook');
  });

  test('does not abort a slow body while bytes keep coming', async () => {
    const { baseUrl, requests } = await serve(slowly(models, 40));
    const startedAt = performance.now();
    const client = createClient({ baseUrl, timeoutMs: 1_500, retries: 0 });
    expect((await client.listModels()).default_model_id).toBe('runbook');
    expect(performance.now() - startedAt).toBeGreaterThan(1_500);
    expect(requests).toHaveLength(1);
  });

  test('does not delay the rejection of a call that the caller aborts', async () => {
    const { baseUrl } = await serve(silentAfterTheBeginning);
    const leaving = new AbortController();
    const asked = createClient({ baseUrl }).listModels({ signal: leaving.signal });
    leaving.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  });
});

describe('an id', () => {
  test.each(['', '.', '..'])(
    'of %j makes the call fail with status 404, without a request to the service',
    async (runId) => {
      const { baseUrl, requests } = await serve(whole('{}'));
      const client = createClient({ baseUrl });
      const refusals = [
        client.getRun({ params: { runId } }),
        client.deleteRun({ params: { runId } }),
        client.streamRunEvents(runId).next(),
      ];
      for (const refused of refusals) {
        await expect(refused).rejects.toThrow(ApiError);
        await expect(refused).rejects.toMatchObject({ status: 404, retryable: false });
      }
      expect(requests).toEqual([]);
    },
  );

  test('is escaped in the path of the request', async () => {
    const { baseUrl, requests } = await serve(whole('{}'));
    for (const runId of ['../x', '...', 'a/b?c#d', '%2e%2e'])
      await createClient({ baseUrl }).getRun({ params: { runId } });
    expect(requests.map((line) => line.split('/runs/')[1])).toEqual(['..%2Fx', '...', 'a%2Fb%3Fc%23d', '%252e%252e']);
  });
});

test.each([
  ['node:http', undefined],
  ['fetch', fetch],
])('an error that was read with %s has the seconds of the header Retry-After', async (_, send) => {
  const { baseUrl } = await serve((response) => response.writeHead(429, { 'retry-after': '17' }).end('wait'));
  const client = createClient({ baseUrl, retries: 0, ...(send ? { fetch: send } : {}) });
  await expect(client.listModels()).rejects.toMatchObject({ retryable: true, retryAfterSeconds: 17 });
});

test('the error of a body that is too large for a proxy names the proxy setting to change', async () => {
  const { baseUrl } = await serve((response) =>
    response.writeHead(413, { 'content-type': 'text/html' }).end('<html>413 Request Entity Too Large</html>'),
  );
  const created = createClient({ baseUrl }).createRun({ body: { prompt: 'a' } });
  await expect(created).rejects.toMatchObject({
    status: 413,
    problem: { error_code: 'invalid_request', detail: expect.stringContaining('client_max_body_size 0') },
  });
});
