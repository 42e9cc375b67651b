import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { publicAddress, startTestProxy } from '../../test/egress.ts';

/** Acts as the service: answers the questions of the proxy with `decision`. */
const questions: object[] = [];
let decision: unknown = 'allowed';
const service = http.createServer(async (request, response) => {
  const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
  questions.push({ path: request.url, key: request.headers.authorization, ...body });
  response.end(JSON.stringify({ decision }));
});
const server = http.createServer((_request, response) => void response.end('reached'));

for (const each of [service, server]) await once(each.listen(0, '127.0.0.1'), 'listening');
const serviceRoot = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
const proxy = await startTestProxy(server, {
  hosts: ['free.example', '*.asked.example', 'api.asked.example:9000', 'asked.example:8080', publicAddress],
  asked: { hosts: ['*.asked.example', 'asked.example:8080'], serviceRoot, runToken: 'ryr_1' },
});
for (const name of ['free.example', 'api.asked.example', 'asked.example']) proxy.names[`${name}.`] = [publicAddress];
beforeEach(() => {
  questions.length = 0;
  decision = 'allowed';
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  for (const each of [service, server]) {
    each.closeAllConnections();
    each.close();
  }
});

const get = (host: string) => proxy.say(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);

test.each([
  ['a name in another case', 'API.asked.EXAMPLE', 'api.asked.example', 80],
  ['a name with a final dot', 'api.asked.example.', 'api.asked.example', 80],
  ['another port', 'asked.example:8080', 'asked.example', 8080],
  ['any port of a rule without a port', 'api.asked.example:9000', 'api.asked.example', 9000],
])('asks the service before each connection to an asked host: %s', async (_name, written, host, port) => {
  for (let time = 0; time < 2; time++) expect(await get(written)).toContain('reached');
  const question = { path: '/api/v1/harness-support/connections', key: 'Bearer ryr_1', host, port };
  expect(questions).toEqual([question, question]);
});

test('asks before a tunnel is opened', async () => {
  decision = 'waiting';
  const { status, socket } = await proxy.connect('api.asked.example:443');
  socket.destroy();
  expect(status).toContain('403');
  expect(questions).toMatchObject([{ host: 'api.asked.example', port: 443 }]);
});

test('asks for each request in a tunnel to port 80', async () => {
  decision = 'denied';
  const { status, socket } = await proxy.connect('api.asked.example:80');
  expect(status).toContain('200');
  socket.write('GET / HTTP/1.1\r\nHost: api.asked.example\r\n\r\n');
  const [answer] = await once(socket, 'data');
  socket.destroy();
  expect(String(answer)).toMatch(/403.*denied this connection/s);
});

test.each([
  ['waiting', 'a person has to approve'],
  ['denied', 'denied this connection'],
  [7, 'a person has to approve'],
])('denies the connection if the service answers %s', async (given, text) => {
  decision = given;
  const before = proxy.dialled.length;
  expect(await get('api.asked.example')).toContain(text);
  expect(proxy.dialled).toHaveLength(before);
});

test('asks nothing about other allowed hosts', async () => {
  expect(await get('free.example')).toContain('reached');
  expect(questions).toEqual([]);
});
