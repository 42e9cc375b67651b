import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { readDetail, refusal, withoutWebSocket } from './refusal.ts';

/** Returns the detail that a worker reads if the body of a refusal is this text. */
async function detailOf(body: string): Promise<string> {
  const server = createServer((_request, response) => response.writeHead(403).end(body)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [response] = (await once(
    get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false }),
    'response',
  )) as [IncomingMessage];
  const detail = await readDetail(response);
  server.closeAllConnections();
  server.close();
  return detail;
}

test.each([
  [
    'the reason of the service',
    JSON.stringify({ status: 403, detail: 'the pool box belongs to Ada' }),
    'the pool box belongs to Ada',
  ],
  ['a reason without control characters', JSON.stringify({ detail: 'a\u001b[2Jb\nc' }), 'a [2Jb c'],
  ['nothing of a page of a proxy', '<html>', ''],
  ['nothing of an answer that is too long', JSON.stringify({ detail: 'a'.repeat(100_000) }), ''],
])('readDetail reads %s', async (_name, body, expected) => {
  expect(await detailOf(body)).toBe(expected);
});

test('the console message about a refused worker name contains the name and the reason', () => {
  expect(refusal(403, 'RUNYARD_API_KEY', 'box', 'the pool box belongs to Ada')).toBe(
    'the service refuses the name box with the key of RUNYARD_API_KEY (403): the pool box belongs to Ada; or set RUNYARD_WORKER_NAME to another name',
  );
});

test('the console message about a WebSocket request that a proxy broke names the proxy settings, unless the service already named them', () => {
  expect(withoutWebSocket(404, '')).toContain('proxy_set_header Upgrade $http_upgrade');
  expect(withoutWebSocket(426, 'The request has no header Upgrade.')).toBe(': The request has no header Upgrade.');
  expect(withoutWebSocket(502, '')).toBe('');
});
