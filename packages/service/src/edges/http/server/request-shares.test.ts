import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { Refusal } from '../../../platform/serving/refusal.ts';
import { trustProxies } from '../../../platform/serving/trusted-proxies.ts';
import { shareRequests } from './request-shares.ts';

let app: FastifyInstance;
let sockets: Socket[];
beforeEach(async () => {
  sockets = [];
  app = closeAtEnd(fastify());
  app.decorate('trustedProxies', trustProxies([]));
  shareRequests(app, 8);
  app.setErrorHandler((error, _request, reply) => {
    if (!(error instanceof Refusal)) throw error;
    return reply.code(429).send(error.options.detail);
  });
  // The path names the team and the caller.
  app.get<{ Params: { team: string; caller: string } }>('/:team/:caller', async ({ params, nameCaller }, reply) => {
    if (params.caller === 'late') await once(reply.raw, 'close');
    if (params.team !== 'none') nameCaller({ team: params.team, id: params.caller });
    reply.hijack();
    reply.raw.write('begin');
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
});

/** Sends a request that stays in progress. Returns its answer: `begin`, or the detail of a refusal. */
async function begin(path: string): Promise<string> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return /begin|This \S+ has|The team/.exec(String(data))?.[0] ?? '';
}

test('a caller has half of the requests in progress, a team three quarters, and another team the rest', async () => {
  for (let n = 0; n < 4; n += 1) expect(await begin('/a/1')).toBe('begin');
  expect(await begin('/a/1')).toBe('This caller has');
  for (let n = 0; n < 2; n += 1) expect(await begin('/a/2')).toBe('begin');
  expect(await begin('/a/2')).toBe('The team');
  for (let n = 0; n < 2; n += 1) expect(await begin('/b/3')).toBe('begin');
  sockets[0]?.destroy();
  await expect.poll(() => begin('/a/1')).toBe('begin');
});

test('a request whose client has disconnected before its key was known takes no place', async () => {
  const { port } = app.server.address() as AddressInfo;
  for (let n = 0; n < 20; n += 1) {
    const socket = connect(port, '127.0.0.1');
    socket.write('GET /a/late HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.destroy());
    await once(socket, 'close');
  }
  for (let n = 0; n < 4; n += 1) await expect.poll(() => begin('/a/1')).toBe('begin');
  for (let n = 0; n < 2; n += 1) expect(await begin('/a/2')).toBe('begin');
});

test('an address has a quarter of the requests in progress without a key, and its requests with a key do not count', async () => {
  for (let n = 0; n < 2; n += 1) expect(await begin('/a/1')).toBe('begin');
  for (let n = 0; n < 2; n += 1) expect(await begin('/none/0')).toBe('begin');
  expect(await begin('/none/0')).toBe('This address has');
  sockets.at(-2)?.destroy();
  await expect.poll(() => begin('/none/0')).toBe('begin');
});
