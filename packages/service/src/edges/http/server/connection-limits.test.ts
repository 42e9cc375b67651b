import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import Fastify from 'fastify';
import { afterAll, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { Refusal } from '../../../platform/serving/refusal.ts';
import { connectionLimits, limitConnections, openFilesLimit } from './connection-limits.ts';

const app = closeAtEnd(Fastify());
limitConnections(app, { most: 6, crowded: 3 }, async ({ headers }) => headers.authorization === 'operator');
app.setErrorHandler((error, _request, reply) => {
  if (!(error instanceof Refusal)) throw error;
  return reply
    .code(error.options.status ?? 500)
    .headers(error.options.headers ?? {})
    .send(error.options.detail);
});
app.get('/readyz', async () => 'ready');
app.get('/thing', async () => 'thing');
app.get('/stream', async (_request, reply) => {
  reply.hijack();
  reply.raw.write('begin');
});
await app.listen({ port: 0, host: '127.0.0.1' });
const { port } = app.server.address() as AddressInfo;
const sockets: Socket[] = [];
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
});

async function ask(path: string, headers = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket.on('error', () => undefined));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => ['closed'])]);
  return String(answer);
}
const statusOf = async (path: string, headers?: string) => (await ask(path, headers)).slice(9, 12);

test('while streams use almost all connections, only probes and the operator are answered', async () => {
  for (let each = 0; each < 3; each += 1) expect(await statusOf('/stream')).toBe('200');
  const refused = await ask('/thing');
  expect(refused).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 5[\s\S]*connection: close/i);
  await once(sockets.at(-1) as Socket, 'close');
  expect(await statusOf('/readyz?from=probe')).toBe('200');
  expect(await statusOf('/thing', 'Authorization: operator\r\n')).toBe('200');
  // The service closes idle connections when it needs connections for other clients.
  for (let each = 0; each < 6; each += 1) await expect.poll(() => statusOf('/readyz')).toBe('200');
});

describe('the limits of connections', () => {
  test.each([
    [1_024, { most: 768, crowded: 720 }],
    [20_000, { most: 19_000, crowded: 18_900 }],
    [1_048_576, { most: 1_047_576, crowded: 1_047_476 }],
  ])('for %i files reserve files for the service itself', (files, limits) => {
    expect(connectionLimits(files)).toEqual(limits);
  });

  test('are derived from the limit of the process', () => {
    expect(openFilesLimit()).toBeGreaterThan(100);
  });
});
