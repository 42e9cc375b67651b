import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { waitingHeader } from '@runyard/contract/agent/headers';
import { expect, test } from 'vitest';
import type { ServiceConnection, ServiceRequest } from '../service/connection.ts';
import { startGitProxy } from './git-proxy.ts';

const gatewayPath = '/api/v1/gateway/git/acme/site.git';
const seen: ServiceRequest[] = [];
/** Answers to the next requests; each gets the number of bytes in the request's body. */
const answers: ((bytes: number) => IncomingMessage)[] = [];
/** A connection that records the requests and does not send them. */
const connection: ServiceConnection = {
  serverRoot: 'http://service',
  token: 'ryr_token',
  relaySocket: undefined,
  open: async (sent) => {
    seen.push(sent);
    const answer = answers.shift();
    if (answer !== undefined) {
      let size = 0;
      for await (const chunk of sent.body as Readable) size += chunk.length;
      return answer(size);
    }
    throw new Error('not reachable');
  },
  call: async () => {
    throw new Error('not reachable');
  },
  close: () => {},
};
const ended = new AbortController();
const variables = await startGitProxy({
  connection,
  repositories: [{ owner: 'acme', repo: 'site', gateway_path: gatewayPath }] as never,
  signal: ended.signal,
});
const base = new URL(/^url\.(.*)\.insteadOf$/.exec(variables.GIT_CONFIG_KEY_0 ?? '')?.[1] ?? '');

/** Sends a request without normalising its path, and returns the status. */
const ask = (path: string, method = 'GET', headers = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: base.hostname, port: base.port, path: base.pathname + path, method, headers });
    sent.on('response', (answer) => resolve(answer.resume().statusCode ?? 0)).on('error', reject);
    sent.end();
  });

test('the proxy forwards git requests, and removes the Content-Length of a GET', async () => {
  expect(await ask('/info/refs?service=git-upload-pack', 'GET', { 'content-length': '0' })).toBe(502);
  expect(await ask('/git-receive-pack', 'POST', { 'content-length': '0' })).toBe(502);
  expect(seen.map(({ path, headers }) => [path, headers?.['content-length']])).toEqual([
    [`${gatewayPath}/info/refs?service=git-upload-pack`, undefined],
    [`${gatewayPath}/git-receive-pack`, '0'],
  ]);
});

test.each([
  '/../../../../harness-support/finish-task',
  '/../other.git/git-upload-pack',
  '/%2e%2e/%2e%2e/harness-support/finish-task',
  '/info/refs?service=git-upload-pack/../../../..',
  '/info/refs/../../git-upload-pack',
  '/git-upload-pack?x=1',
  '/objects/info/packs',
  '-other.git/git-upload-pack',
])('refuses requests that git does not send: %s', async (path) => {
  seen.length = 0;
  for (const method of ['GET', 'POST', 'PUT']) expect(await ask(path, method, { 'content-length': '0' })).toBe(404);
  expect(seen).toEqual([]);
});

test('sends a push again while it waits for a person, and a push above 8 MB only once', async () => {
  const answer = (headers: object) => (bytes: number) =>
    Object.assign(Readable.from([`${bytes}`]), { statusCode: 200, headers }) as unknown as IncomingMessage;
  const push = (bytes: number) =>
    new Promise<string>((resolve, reject) => {
      const path = `${base.pathname}/git-receive-pack`;
      const sent = request({ host: base.hostname, port: base.port, path, method: 'POST' });
      sent.on('response', async (given) => resolve((await given.toArray()).join(''))).on('error', reject);
      sent.end(Buffer.alloc(bytes));
    });
  const waits = { [waitingHeader]: 'waiting' };
  seen.length = 0;
  answers.push(answer(waits), answer(waits), answer({}));
  expect(await push(1000)).toBe('1000');
  expect(seen).toHaveLength(3);
  answers.push(answer(waits), answer({}));
  expect(await push(9_000_000)).toBe('9000000');
  expect(seen).toHaveLength(4);
  answers.length = 0;
});
