import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { openRelay, openUpstream, type Upstream } from './relay.ts';
import type { Relay } from './socket-server.ts';

let folder: string;
let socketPath: string;
let service: http.Server;
let handle: (request: IncomingMessage, response: ServerResponse) => void;
let seen: string[];
let upstream: Upstream;
let relay: Relay;

beforeEach(async () => {
  folder = newFolder();
  socketPath = path.join(folder, 'relay.sock');
  seen = [];
  handle = (_request, response) => void response.end('ok');
  service = closeAtEnd(
    http.createServer((request, response) => {
      seen.push(`${request.method} ${request.headers.host} ${request.url}`);
      handle(request, response);
    }),
  );
  service.listen(0, '127.0.0.1');
  await once(service, 'listening');
  upstream = openUpstream(`http://127.0.0.1:${(service.address() as AddressInfo).port}`);
  relay = await openRelay(socketPath, upstream);
});

afterEach(async () => {
  await relay.close();
  upstream.close();
  service.closeAllConnections();
});

const port = (): number => (service.address() as AddressInfo).port;

function ask(options: http.RequestOptions): http.ClientRequest {
  return http.request({ socketPath, agent: false, ...options });
}

async function answerOf(
  request: http.ClientRequest,
): Promise<{ status: number | undefined; body: string; headers: http.IncomingHttpHeaders }> {
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, body, headers: response.headers };
}

/** Sends the text unchanged to the relay and returns all bytes of the answer. */
async function raw(text: string): Promise<string> {
  const socket = net.connect(socketPath);
  socket.on('error', () => {});
  socket.write(text);
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  await once(socket, 'close');
  return answer;
}

test('only the user of the relay process may connect to the socket', async () => {
  expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
});

test('the relay forwards a request with its Authorization header, and forwards the answer', async () => {
  handle = (request, response) =>
    response.writeHead(201, { 'x-of-service': 'yes' }).end(`auth ${request.headers.authorization}`);
  const answer = await answerOf(
    ask({
      path: '/api/v1/harness-support/resolve-prompt',
      method: 'POST',
      headers: { authorization: 'Bearer run-token' },
    }),
  );
  expect(answer).toMatchObject({ status: 201, body: 'auth Bearer run-token', headers: { 'x-of-service': 'yes' } });
});

test('a sandbox cannot choose the Host header or pretend to have another address', async () => {
  handle = (request, response) => void response.end(JSON.stringify(request.headers));
  const headers = {
    host: '169.254.169.254',
    'x-forwarded-for': '10.0.0.1',
    forwarded: 'for=10.0.0.1',
    'x-mine': 'kept',
  };
  const { body } = await answerOf(ask({ path: '/api/v1/gateway/x', headers }));
  expect(seen).toEqual([`GET 127.0.0.1:${port()} /api/v1/gateway/x`]);
  expect(JSON.parse(body)).toMatchObject({ 'x-mine': 'kept' });
  expect(body).not.toContain('10.0.0.1');
});

test('a path that sandboxes may not use gets 403 and never reaches the service', async () => {
  for (const target of ['/api/v1/agent/runs', '/api/v1/gateway/../agent/runs', '/api/v1/gateway/%2e%2e/agent/runs']) {
    const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  }
  expect(await raw('GET http://127.0.0.1:1/api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 403 /,
  );
  expect(await raw(`CONNECT 127.0.0.1:${port()} HTTP/1.1\r\nHost: x\r\n\r\n`)).toBe('');
  expect(await raw('TRACE /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 405 /,
  );
  expect(seen).toEqual([]);
});

test('the relay returns a redirect and does not follow it', async () => {
  handle = (_request, response) => response.writeHead(302, { location: '/api/v1/agent/runs' }).end();
  const { status, headers } = await answerOf(ask({ path: '/api/v1/gateway/x' }));
  expect([status, headers.location]).toEqual([302, '/api/v1/agent/runs']);
  expect(seen).toHaveLength(1);
});

test('the service does not read a request that is hidden in the body of another request', async () => {
  let body = '';
  handle = async (request, response) => {
    for await (const chunk of request) body += chunk;
    response.end('done');
  };
  const inner = `POST /api/v1/agent/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`;
  const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
  const answer = await raw(
    `GET /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
  );
  expect(answer).toContain('done');
  expect(body).toBe(inner);
  expect(seen).toHaveLength(1);
  const both = await raw(
    `POST /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
  );
  expect(both).not.toContain('done');
  expect(seen).toHaveLength(1);
});

test('the service does not read a hidden request, even if Connection lists Content-Length as hop-by-hop', async () => {
  const hidden = 'GET /api/v1/agent/runs HTTP/1.1\r\nHost: x\r\n\r\n';
  for (const method of ['GET', 'DELETE', 'HEAD', 'POST']) {
    const head = `${method} /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nConnection: close, Content-Length`;
    await raw(`${head}\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`);
  }
  // This last request uses the same connection to the service as the others. So if the service had read a hidden request, it would have
  // done so before this request.
  await answerOf(ask({ path: '/api/v1/gateway/last' }));
  expect(seen.filter((request) => request.includes('/agent/'))).toEqual([]);
});

test('a stream arrives piece by piece while the service writes it', async () => {
  const next = Promise.withResolvers<void>();
  handle = async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: one\n\n');
    await next.promise;
    response.end('data: two\n\n');
  };
  const request = ask({ path: '/api/v1/gateway/stream' });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const [first] = await once(response, 'data');
  expect(String(first)).toBe('data: one\n\n');
  next.resolve();
  const [second] = await once(response, 'data');
  expect(String(second)).toBe('data: two\n\n');
});

test('the relay forwards a large upload completely', async () => {
  let bytes = 0;
  handle = (request, response) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    request.on('end', () => response.end('got it'));
  };
  const request = ask({ path: '/api/v1/harness-support/upload-snapshot', method: 'PUT' });
  for (let piece = 0; piece < 64; piece++) request.write(Buffer.alloc(256 * 1024, piece));
  expect((await answerOf(request)).body).toBe('got it');
  expect(bytes).toBe(16 * 1024 * 1024);
});

test('the relay closes its connection to the service when the sandbox closes the connection to the relay', async () => {
  const closed = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  handle = (_request, response) => {
    response.on('close', () => closed.resolve());
    arrived.resolve();
  };
  const request = ask({ path: '/api/v1/harness-support/inbox?wait_ms=25000' });
  request.on('error', () => {});
  request.end();
  await arrived.promise;
  request.destroy();
  await closed.promise;
});

test('if the service breaks off an answer, the answer to the sandbox is broken off too and does not look complete', async () => {
  handle = (_request, response) => {
    response.write('half');
    setImmediate(() => response.destroy());
  };
  const request = ask({ path: '/api/v1/gateway/x' });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const read = async (): Promise<void> => {
    for await (const _chunk of response);
  };
  await expect(read()).rejects.toThrow('aborted');
});

test('the relay answers 503 at once while the service is down, and forwards again when the service is back', async () => {
  const address = port();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  const began = performance.now();
  const { status, headers } = await answerOf(ask({ path: '/api/v1/harness-support/events', method: 'POST' }));
  expect([status, headers['retry-after']]).toEqual([503, '1']);
  // Checks that the relay does not wait for its connection time limit, which is 5 s.
  expect(performance.now() - began).toBeLessThan(4000);
  service.listen(address, '127.0.0.1');
  await once(service, 'listening');
  expect((await answerOf(ask({ path: '/api/v1/harness-support/events', method: 'POST' }))).status).toBe(200);
});

test('the relay accepts 64 connections of a sandbox at the same time, and closes only further connections', async () => {
  const connected = async (): Promise<net.Socket> => {
    const socket = net.connect(socketPath);
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  const held: net.Socket[] = [];
  for (let count = 0; count < 64; count++) held.push(await connected());
  const [first, second] = held;
  const beyond = await connected();
  beyond.resume();
  await once(beyond, 'close');
  first?.write('GET /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\n\r\n');
  const [answer] = first === undefined ? [] : await once(first, 'data');
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  expect(held.filter((socket) => socket.closed)).toEqual([]);
  second?.destroy();
  // The relay notices the closed connection a moment later, so the request is repeated until it succeeds.
  const again = async (): Promise<number | undefined> =>
    answerOf(ask({ path: '/api/v1/gateway/x' })).then(
      ({ status }) => status,
      () => again(),
    );
  expect(await again()).toBe(200);
  for (const socket of held) socket.destroy();
});

test('the relay refuses requests with headers beyond 32 KB', async () => {
  const answer = await raw(`GET /api/v1/gateway/x HTTP/1.1\r\nHost: x\r\nX-Big: ${'x'.repeat(40_000)}\r\n\r\n`);
  expect(answer).not.toContain('200 OK');
  expect(seen).toEqual([]);
});
