import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { afterAll, afterEach, expect, test } from 'vitest';
import { connectToService } from '../../service/connection.ts';
import { startForwarder } from './forwarder.ts';
import type { ModelRefusal } from './refusals.ts';

const token = 'ryr_token-of-the-run';
interface Seen {
  readonly url: string;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}
const seen: Seen[] = [];
const refusals: ModelRefusal[] = [];
const hosts: string[] = [];
let answer = { status: 200, body: '{"ok":true}' };
let held: Promise<void> | undefined;
let isCut = false;
const service = createServer(async (incoming, response) => {
  let body = '';
  for await (const chunk of incoming) body += chunk;
  seen.push({ url: incoming.url ?? '', headers: incoming.headers, body });
  await held;
  if (isCut) {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n', () => response.destroy());
    return;
  }
  response.writeHead(answer.status, { 'content-type': 'application/json', 'set-cookie': 'a=b' }).end(answer.body);
});

service.listen(0, '127.0.0.1');
await once(service, 'listening');
const serverRoot = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
const forwarder = await startForwarder({
  connection: connectToService({ serverRoot, token }),
  isExpected: ({ message }) => message.includes('side-model'),
  onRefused: (refusal) => refusals.push(refusal),
  onDenied: (host) => hosts.push(host),
});
afterEach(() => {
  answer = { status: 200, body: '{"ok":true}' };
  held = undefined;
  isCut = false;
  seen.length = 0;
  refusals.length = 0;
});
afterAll(() => {
  forwarder.close();
  service.close();
  service.closeAllConnections();
});

const post = (path: string, headers: Record<string, string> = { 'x-api-key': forwarder.key }) =>
  fetch(forwarder.url + path, { method: 'POST', headers, body: '{"model":"m"}' });

test.each([
  ['/anthropic/v1/messages', 'x-api-key', (key: string) => key],
  ['/openai/v1/responses', 'authorization', (key: string) => `Bearer ${key}`],
  ['/google/v1beta/models/g%3AstreamGenerateContent?alt=sse', 'x-goog-api-key', (key: string) => key],
])('passes %s on with the run token in place of the key', async (path, header, value) => {
  const response = await post(path, { [header]: value(forwarder.key), 'anthropic-version': '1' });
  expect(await response.json()).toEqual({ ok: true });
  expect(seen[0]).toMatchObject({ url: `/api/v1/gateway${path.replace('%3A', ':')}`, body: '{"model":"m"}' });
  expect(seen[0]?.headers).toMatchObject({ authorization: `Bearer ${token}`, 'anthropic-version': '1' });
  expect(JSON.stringify(seen)).not.toContain(forwarder.key);
});

test('the forwarder never includes the run token in an answer', async () => {
  const response = await post('/anthropic/v1/messages');
  const everything = JSON.stringify([...response.headers]) + (await response.text());
  expect(everything).not.toContain(token);
  expect(everything).not.toContain('set-cookie');
});

test('the forwarder resets the connection of an incomplete answer, so that the program sends its request again', async () => {
  isCut = true;
  const response = await post('/google/v1beta/models/g:streamGenerateContent');
  const error = await response.text().catch((reason: Error) => reason);
  expect(error).toMatchObject({ cause: { code: 'ECONNRESET' } });
});

test.each([undefined, 'wrong', token])('the forwarder answers 401 to a program with the key %s', async (key) => {
  const response = await post('/anthropic/v1/messages', key === undefined ? {} : { 'x-api-key': key });
  expect(response.status).toBe(401);
  expect(seen).toEqual([]);
});

test.each([
  '/api/v1/harness-support/finish-task',
  '/git/acme/hello.git/info/refs',
  '/mcp/server',
  '/anthropic/%2e%2e/git/x',
  '/anthropic/v1/../../git/x',
  '/anthropic//..%2fgit',
])('forwards no request for %s', async (path) => {
  const { port } = new URL(forwarder.url);
  const sent = request({ port, path, method: 'POST', headers: { 'x-api-key': forwarder.key } });
  sent.end('{}');
  const [response] = await once(sent, 'response');
  expect(response.statusCode).toBe(404);
  expect(seen).toEqual([]);
  response.resume();
});

test('the forwarder answers 404 to a browser page, and 413 to a body that is too large for the gateway', async () => {
  expect((await post('/openai/v1/responses', { 'x-api-key': forwarder.key, origin: 'http://x' })).status).toBe(404);
  const body = Buffer.alloc(17 * 1024 * 1024);
  const large = await fetch(`${forwarder.url}/openai/v1/responses`, {
    method: 'POST',
    headers: { 'x-api-key': forwarder.key },
    body,
  }).then(
    ({ status }) => status,
    () => 'cut',
  );
  expect([413, 'cut']).toContain(large);
  expect(seen).toEqual([]);
});

test('the forwarder answers 429 if a run sends too many concurrent requests', async () => {
  const gate = Promise.withResolvers<void>();
  held = gate.promise;
  const first = Array.from({ length: 12 }, () => post('/openai/v1/responses'));
  await expect.poll(() => seen.length).toBe(12);
  expect((await post('/openai/v1/responses')).status).toBe(429);
  gate.resolve();
  expect((await Promise.all(first)).map(({ status }) => status)).toEqual(Array(12).fill(200));
});

test('the forwarder stores the last refused model request of a turn, but ignores refusals that do not affect the harness', async () => {
  forwarder.beginTurn();
  answer = { status: 403, body: '{"error":{"message":"not this model"}}' };
  await (await post('/openai/v1/responses')).text();
  answer = { status: 403, body: '{"error":{"message":"not \\"side-model\\""}}' };
  await (await post('/openai/v1/responses')).text();
  expect(forwarder.answers).toEqual({ succeeded: 0, refused: { status: 403, message: 'not this model' } });
  expect(refusals).toEqual([{ status: 403, message: 'not this model' }]);
  forwarder.beginTurn();
  answer = { status: 200, body: '{}' };
  await (await post('/openai/v1/responses')).text();
  expect(forwarder.answers).toEqual({ succeeded: 1, refused: undefined });
});

async function say(text: string): Promise<string> {
  const socket = connect(Number(new URL(forwarder.url).port), '127.0.0.1');
  socket.write(text);
  let got = '';
  for await (const chunk of socket) got += chunk;
  return got;
}

test('the forwarder refuses proxy requests, and reports each host once, up to a maximum number of hosts', async () => {
  expect(await say('CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n')).toContain('403');
  expect(await say('GET http://Example.org/a HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n')).toContain(
    '403',
  );
  await say('CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n');
  await say('CONNECT bad\u0007name HTTP/1.1\r\nhost: x\r\n\r\n');
  expect(hosts).toEqual(['example.com:443', 'example.org']);
  for (let index = 0; index < 30; index++) await say(`CONNECT h${index}.example:443 HTTP/1.1\r\nhost: x\r\n\r\n`);
  expect(hosts).toHaveLength(20);
  expect(seen).toEqual([]);
});

test.each(['127.0.0.1', '0.0.0.0', '::'])(
  'another program that listens on %s cannot take the port of the forwarder',
  async (host) => {
    const forger = createTcpServer();
    forger.listen({ port: Number(new URL(forwarder.url).port), host });
    const [error] = await once(forger, 'error');
    expect(error.code).toBe('EADDRINUSE');
  },
);
