import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectToService } from '../service/connection.ts';
import { type McpLoopback, startMcpLoopback } from './loopback.ts';

const token = 'ryr_token-of-the-run';
const seen: { path: string | undefined; method: string | undefined; headers: IncomingHttpHeaders; body: string }[] = [];
let service: http.Server;
let loopback: McpLoopback;

beforeEach(async () => {
  seen.length = 0;
  service = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    seen.push({ path: request.url, method: request.method, headers: request.headers, body });
    response.writeHead(200, { 'content-type': 'text/event-stream', 'mcp-session-id': 's', 'set-cookie': 'a=b' });
    response.end('data: {}\n\n');
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  const serverRoot = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  loopback = await startMcpLoopback(connectToService({ serverRoot, token }));
});
afterEach(() => {
  loopback.close();
  service.close();
  service.closeAllConnections();
});

test('the MCP loopback forwards requests to the gateway with the run token, and the harness does not see the token', async () => {
  const [first, second] = ['/api/v1/gateway/mcp/a', '/api/v1/gateway/mcp/b%20c'].map((path) => loopback.urlOf(path));
  expect(`${first} ${second}`).not.toContain(token);
  const headers = { 'mcp-session-id': 's0', cookie: 'x', authorization: 'Bearer mine' };
  const answer = await fetch(second ?? '', { method: 'POST', body: '{}', headers });
  expect([answer.status, await answer.text()]).toEqual([200, 'data: {}\n\n']);
  expect(answer.headers.get('mcp-session-id')).toBe('s');
  expect(answer.headers.get('set-cookie')).toBeNull();
  expect(seen).toEqual([
    {
      path: '/api/v1/gateway/mcp/b%20c',
      method: 'POST',
      body: '{}',
      headers: expect.objectContaining({ authorization: `Bearer ${token}`, 'mcp-session-id': 's0' }),
    },
  ]);
  expect(seen[0]?.headers).not.toHaveProperty('cookie');
});

test('the MCP loopback answers 404 to requests without the secret, from browser pages, and for other paths of the service', async () => {
  const url = new URL(loopback.urlOf('/api/v1/gateway/mcp/a'));
  const send = async (path: string, init: RequestInit = {}) =>
    (await fetch(new URL(path, url), { method: 'POST', body: '{}', ...init })).status;
  expect(await send('/api/v1/gateway/mcp/a')).toBe(404);
  expect(await send('/guess/0')).toBe(404);
  expect(await send(`${url.pathname.replace(/0$/, '1')}`)).toBe(404);
  expect(await send(url.pathname, { method: 'PUT' })).toBe(404);
  expect(await send(url.pathname, { headers: { origin: 'http://evil.example' } })).toBe(404);
  expect(seen).toEqual([]);
});

test('the MCP loopback does not read a body that is too large for the gateway', async () => {
  const url = loopback.urlOf('/api/v1/gateway/mcp/a');
  const answer = await fetch(url, { method: 'POST', body: 'x'.repeat(5 * 1024 * 1024) }).then(
    ({ status }) => status,
    () => 'cut',
  );
  expect([502, 'cut']).toContain(answer);
  expect(seen).toEqual([]);
});
