import { createServer, type RequestListener, type Server } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { type RelayCall, type RelayCalls, relayCalls } from './relay-calls.ts';

let folder: string;
let server: Server;
let calls: RelayCalls;
let respond: RequestListener;
let connections: number;
beforeEach(async () => {
  folder = newFolder();
  connections = 0;
  server = closeAtEnd(
    createServer((request, response) => respond(request, response)).on('connection', () => connections++),
  );
  const socket = path.join(folder, 'relay.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  calls = relayCalls(socket);
});
afterEach(() => {
  calls.close();
  server.closeAllConnections();
});

const request: RelayCall = {
  method: 'POST',
  path: '/a?b=c',
  headers: { host: 'runyard', authorization: 'Bearer t' },
  body: '{"ä":1}',
  signal: undefined,
  idleTimeoutMs: 20_000,
  maxBytes: () => 1000,
};
const call = (more: Partial<RelayCall> = {}) => calls.call({ ...request, ...more });

test('a call sends method, path, headers and body, and reuses the connection', async () => {
  const seen: unknown[] = [];
  respond = async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    seen.push([request.method, request.url, request.headers.authorization, request.headers['content-length'], body]);
    response.writeHead(201).end('answered');
  };
  expect(await call()).toEqual({ status: 201, retryAfter: undefined, body: Buffer.from('answered') });
  await call({ method: 'GET', body: undefined });
  expect(seen).toEqual([
    ['POST', '/a?b=c', 'Bearer t', '8', '{"ä":1}'],
    ['GET', '/a?b=c', 'Bearer t', undefined, ''],
  ]);
  expect(connections).toBe(1);
});

test('concurrent calls use separate connections', async () => {
  const waiting: (() => void)[] = [];
  respond = (_, response) => {
    waiting.push(() => response.end('x'));
    if (waiting.length === 2) for (const answer of waiting) answer();
  };
  await Promise.all([call(), call()]);
  expect(connections).toBe(2);
});

test('a call opens a new connection after the relay has closed the old connection', async () => {
  respond = ({ socket }, response) => void response.end('x', () => socket.destroy());
  await call();
  // Repeat a failed call, as the real callers do, because a call fails if the relay closes its connection at the same moment.
  const inAll = () =>
    call().then(
      () => connections,
      () => 0,
    );
  await expect.poll(inAll).toBeGreaterThan(1);
});

test('a call rejects when its connection closes before the answer is complete', async () => {
  respond = (_, response) => {
    response.writeHead(200, { 'content-length': '10' });
    response.write('half', () => response.destroy());
  };
  await expect(call()).rejects.toThrow('the connection closed');
});

test('a call rejects after its idle timeout and after an abort', async () => {
  respond = () => {};
  await expect(call({ idleTimeoutMs: 20 })).rejects.toThrow('no answer for 20 ms');
  const abort = new AbortController();
  const waiting = call({ signal: abort.signal });
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
  await expect(call({ signal: abort.signal })).rejects.toThrow('enough');
});

test('a call rejects when no program listens on the socket', async () => {
  await expect(relayCalls(path.join(folder, 'none')).call(request)).rejects.toThrow('ENOENT');
});

test.each([
  ['a line end in the path', { path: '/a\r\nx: y' }],
  ['a blank in the path', { path: '/a b' }],
  ['a line end in a header', { headers: { authorization: 'Bearer t\r\nx: y' } }],
])('does not send %s', async (_, more) => {
  respond = (_, response) => void response.end();
  await expect(call(more)).rejects.toThrow('characters that HTTP does not allow');
  expect(connections).toBe(0);
});
