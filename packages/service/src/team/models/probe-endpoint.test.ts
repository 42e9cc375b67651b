import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startFakeModels } from '../../../../../test/fakes/models.ts';
import { isWithoutStreamOptions, probeEndpoint } from './probe-endpoint.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  ['calls the tool', { toolCalls: [{ name: 'ping', input: {} }] }, true],
  ['answers in words', { text: ['pong'] }, false],
] as const)('a probe finds that a model streams and %s', async (_, turn, callsTools) => {
  const fake = await startFakeModels();
  fake.script([turn]);
  const key = fake.env.RUNYARD_MODEL_KEY ?? '';
  const found = await probeEndpoint({ baseUrl: `${fake.url}/local/v1`, key }, 'fake-local', 60_000);
  expect(found).toEqual({ kind: 'probed', streams: true, callsTools, takesStreamOptions: true });
  await fake.close();
});

const failures: readonly (readonly [string, RequestListener, string])[] = [
  ['is refused', (_, response) => response.writeHead(400).end('no tools here'), 'it answered 400'],
  ['is giant', (_, response) => response.end('x'.repeat(300_000)), 'larger than 256 KB'],
  ['does not come', () => {}, 'did not answer within 0.2 s'],
  ['does not end', (_, response) => void response.write('data: {}\n\n'), 'did not answer within 0.2 s'],
  ['is no JSON', (_, response) => response.end('<html>'), 'does not have the form'],
  ['is a page', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), 'a web page'],
  ['redirects', (_, response) => response.writeHead(302, { location: '/' }).end(), 'it answered 302'],
];
test.each(failures)('the result of a probe contains a reason if the answer %s', async (_, listener, reason) => {
  const limitMs = reason.includes('0.2 s') ? 200 : 60_000;
  const found = await probeEndpoint({ baseUrl: await serve(listener) }, 'm', limitMs);
  expect(found).toMatchObject({ kind: 'failed', reason: expect.stringContaining(reason) });
});

test('an endpoint that sends its answer in one document counts as an endpoint that does not stream', async () => {
  const body = JSON.stringify({ choices: [{ message: { tool_calls: [{ id: 'c' }] } }] });
  const baseUrl = await serve((_, response) => void response.setHeader('content-type', 'application/json').end(body));
  expect(await probeEndpoint({ baseUrl }, 'm', 60_000)).toMatchObject({ streams: false, callsTools: true });
});

test('a probe recognizes an endpoint that refuses stream_options', async () => {
  const body = JSON.stringify({ choices: [{ message: { tool_calls: [{ id: 'c' }] } }] });
  const baseUrl = await serve(async (request, response) => {
    let asked = '';
    for await (const part of request) asked += part;
    response.writeHead(asked.includes('stream_options') ? 422 : 200).end(body);
  });
  const found = await probeEndpoint({ baseUrl }, 'm', 60_000);
  expect(found).toMatchObject({ kind: 'probed', callsTools: true, takesStreamOptions: false });
  expect(isWithoutStreamOptions(found)).toBe(true);
});
