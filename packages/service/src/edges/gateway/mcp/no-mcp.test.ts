import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makeAddressRules } from '@runyard/system/address-rules';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { sendToMcpServer } from './mcp-upstream.ts';
import { explainNoMcp } from './no-mcp.ts';

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
const seen: IncomingMessage[] = [];
const server = http.createServer((request, response) => {
  seen.push(request);
  answer(request, response);
});
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`;
});
beforeEach(() => void seen.splice(0));
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const rules = makeAddressRules(['127.0.0.0/8']);
const upstream = { rules, allowsPrivate: true, resolve: async () => [], answerMs: 60_000, connectMs: 60_000 };

/** Sends a message to the server as the gateway does, and returns the explanation of the server's answer. */
async function explain(headers: Readonly<Record<string, string>> = {}, method = 'POST'): Promise<string | undefined> {
  const { signal } = new AbortController();
  const sent = await sendToMcpServer({ url, method, headers }, upstream, signal);
  if (sent.kind !== 'answer') throw new Error(sent.message);
  const explained = await explainNoMcp(sent.response, { url, method, headers, upstream, signal });
  sent.response.destroy();
  return explained;
}

const page = (response: ServerResponse, status: number) =>
  void response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' }).end('<pre>Cannot POST /sse</pre>');
const stream = (text: string) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(text);

test.each([
  [
    'a server of the old transport',
    404,
    stream('event: endpoint\r\ndata: /messages?sessionId=1\r\n\r\n'),
    /HTTP\+SSE.*\/mcp in place of \/sse/,
  ],
  [
    'another stream, which it does not read to its end',
    405,
    stream('data: 1\n\n'.repeat(600)),
    /status 405 and a web page/,
  ],
  ['a page', 404, (response: ServerResponse) => page(response, 200), /status 404 and a web page/],
  ['a sign-in', 200, (response: ServerResponse) => page(response, 200), /status 200 and a web page/],
])('explains %s', async (_, status, get, message) => {
  answer = ({ method }, response) => (method === 'GET' ? get(response) : page(response, status));
  expect(await explain({ authorization: 'of-the-team' })).toMatch(message);
  expect(seen.map(({ headers }) => headers.authorization)).toEqual(seen.map(() => 'of-the-team'));
});

test.each([
  ['the end of a session', 404, { 'mcp-session-id': 's' }, 'POST', 1],
  ['a refusal in JSON', 404, {}, 'POST', 2],
  ['a server without a stream of its own', 405, {}, 'GET', 1],
  ['an answer', 200, {}, 'POST', 1],
])('leaves the answer %s to the client', async (_, status, headers, method, requests) => {
  answer = (_request, response) => void response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  expect(await explain(headers, method)).toBeUndefined();
  expect(seen).toHaveLength(requests);
});
