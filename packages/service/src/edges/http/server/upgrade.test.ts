import { randomUUIDv7 } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { joinWorkerPool } from '../../../../test/key.ts';
import { openTestService } from '../../../../test/service.ts';
import { trustProxies } from '../../../platform/serving/trusted-proxies.ts';
import { enterPool, type PoolCaller } from '../../../team/access/worker-pools/enter.ts';
import { type Hub, openHub } from '../../workers/hub.ts';
import { serveWorkerSockets, workerSocketPath } from '../../workers/socket.ts';
import { authenticateWorker } from './authorize.ts';

const service = await openTestService();
const hub: Hub = closeAtEnd(openHub(service.deps.executionDeps, { serviceInstanceId: randomUUIDv7() }));
const { log, keys, keyWatch } = service.deps;
const authenticate = (authorization: string | undefined) => authenticateWorker(keys, authorization);
const enter = (caller: PoolCaller, name: string) => enterPool(service.deps.db, caller, name);
const trustedProxies = trustProxies([]);
const options = { hub, log, authenticate, keyWatch, trustedProxies, enterPool: enter, maxConnectionsOfTeam: 2 };
const stopServing: () => void = serveWorkerSockets(service.app.server, options);
afterAll(async () => {
  stopServing();
});

/** Returns everything that the service answers to these lines of a request, until it closes the connection. */
async function answerTo(lines: readonly string[], body = ''): Promise<string> {
  const socket = connect(Number(new URL(service.baseUrl).port), '127.0.0.1');
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`);
  let received = '';
  socket.on('data', (data) => {
    received += data;
  });
  await once(socket, 'close');
  return received;
}

/** The headers of the first request of curl --http2 and of Java's HttpClient. */
const h2c = [
  'Host: service',
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAMAAABkAAQAAP__',
];

describe('a request that offers HTTP/2 without TLS', () => {
  test('is answered over HTTP/1.1', async () => {
    const answer = await answerTo(['GET /healthz HTTP/1.1', ...h2c]);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('{"status":"ok"}');
  });

  test('is read with its body', async () => {
    const body = JSON.stringify({ prompt: 'Say hello' });
    const answer = await answerTo(
      [
        'POST /api/v1/agent/runs HTTP/1.1',
        ...h2c,
        `Authorization: Bearer ${service.key}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ],
      body,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('"run_id"');
  });

  test('gets the 404 of its path, also at the path of the worker socket', async () => {
    for (const path of ['/nothing', workerSocketPath])
      expect(await answerTo([`GET ${path} HTTP/1.1`, ...h2c])).toContain('"error_code":"resource_not_found"');
  });
});

test("a WebSocket request at a path other than the workers' path is answered like a normal request", async () => {
  const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}/healthz`);
  const [error] = await once(socket, 'error');
  expect(String(error)).toContain('Unexpected server response: 200');
});

test('a worker gets its WebSocket', async () => {
  const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}${workerSocketPath}?worker_id=a`, {
    headers: { authorization: `Bearer ${service.key}` },
  });
  await once(socket, 'open');
  const closed = once(socket, 'close');
  socket.close();
  await closed;
});

test('a team has a limited number of connections of workers', async () => {
  const url = `${service.baseUrl.replace('http', 'ws')}${workerSocketPath}?worker_id=a`;
  const open = (key: string) => new WebSocket(url, { headers: { authorization: `Bearer ${key}` } });
  const secondKey = await service.newKey();
  for (const key of [service.key, secondKey]) await joinWorkerPool(service.deps.db, 'a', key);
  const sockets = [open(service.key), open(secondKey)];
  await Promise.all(sockets.map((socket) => once(socket, 'open')));
  const [error] = await once(open(service.key), 'error');
  expect(String(error)).toContain('Unexpected server response: 429');
  const ofOthers = open(service.otherKey);
  await once(ofOthers, 'open');
  ofOthers.terminate();
  sockets[0]?.terminate();
  const isAccepted = async () => {
    const socket = open(service.key);
    const outcome = await Promise.race([
      once(socket, 'open').then(() => true),
      once(socket, 'error').then(() => false),
    ]);
    socket.terminate();
    return outcome;
  };
  await expect.poll(isAccepted).toBe(true);
  sockets[1]?.terminate();
});

test('a client whose WebSocket is refused is disconnected, even if it keeps its own side open', async () => {
  const accepted = once(service.app.server, 'connection');
  const client = connect({ port: Number(new URL(service.baseUrl).port), host: '127.0.0.1', allowHalfOpen: true });
  client.write(
    `GET ${workerSocketPath}?worker_id=a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  );
  const [serverSide] = await accepted;
  let answer = '';
  client.on('data', (bytes) => {
    answer += bytes;
  });
  await once(client, 'end');
  expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  await expect.poll(() => serverSide.destroyed).toBe(true);
  client.destroy();
});

test('one key of a team has half of its connections, and the workers of the hosted pool have connections of their own', async () => {
  const open = (key: string, name: string) =>
    new WebSocket(`${service.baseUrl.replace('http', 'ws')}${workerSocketPath}?worker_id=${name}`, {
      headers: { authorization: `Bearer ${key}` },
    });
  const refusalTo = async (key: string, name: string) => String((await once(open(key, name), 'error'))[0]);
  const [member, other] = [await service.newKey(), await service.newKey()];
  for (const key of [member, other]) await joinWorkerPool(service.deps.db, 'b', key);
  const sockets = [open(member, 'b')];
  await once(sockets[0] as WebSocket, 'open');
  expect(await refusalTo(member, 'b')).toContain('429');
  for (const [key, name] of [
    [other, 'b'],
    [service.key, 'runyard-1'],
    [service.key, 'runyard-2'],
  ] as const) {
    const socket = open(key, name);
    await once(socket, 'open');
    sockets.push(socket);
  }
  expect(await refusalTo(service.key, 'runyard-3')).toContain('429');
  for (const socket of sockets) {
    const closed = once(socket, 'close');
    socket.close();
    await closed;
  }
});
