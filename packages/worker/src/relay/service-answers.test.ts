import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { type AskService, serviceAnswers } from './service-answers.ts';

async function withAnswers(ask: AskService, token = 'ryr_run') {
  const answer = serviceAnswers('/base', () => token, ask);
  const server = http.createServer((request, response) => {
    if (!answer(request, response)) response.writeHead(418).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const call = async (method: string, path: string, authorization = 'Bearer ryr_run') => {
    const { port } = server.address() as AddressInfo;
    const request = http.request({ port, method, path, agent: false, headers: { authorization } }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return `${response.statusCode} ${await text(response)}`;
  };
  return { call, [Symbol.asyncDispose]: async () => void server.close() };
}

test('only a request with the run token starts and reads a service', async () => {
  const asked: unknown[] = [];
  await using it = await withAnswers(async (...order) => {
    asked.push(order);
    return order[0] === 'db' ? { output: 'up' } : undefined;
  });
  for (const wrong of ['', 'Bearer ', 'Bearer ryr_other', 'ryr_run'])
    expect(await it.call('POST', '/base/sandbox/services/db', wrong)).toBe('401 {}');
  expect(asked).toEqual([]);
  expect(await it.call('POST', '/base/sandbox/services/db')).toBe('200 {"output":"up"}');
  expect(await it.call('GET', '/base/sandbox/services/db')).toBe('200 {"output":"up"}');
  expect(await it.call('GET', '/base/sandbox/services/..%2fdb')).toBe('404 {}');
  expect(asked).toEqual([
    ['db', true],
    ['db', false],
    ['..%2fdb', false],
  ]);
  for (const [method, path] of [
    ['DELETE', '/base/sandbox/services/db'],
    ['GET', '/sandbox/services/db'],
  ] as const)
    expect(await it.call(method, path)).toBe('418 ');
});

test('before the agent has its run token, no request is answered, and a failure of the worker is reported', async () => {
  await using early = await withAnswers(async () => ({ output: '' }), '');
  expect(await early.call('POST', '/base/sandbox/services/db', 'Bearer ')).toBe('401 {}');
  await using broken = await withAnswers(async () => await Promise.reject(new Error('no engine')));
  expect(await broken.call('POST', '/base/sandbox/services/db')).toBe('503 {}');
  expect(await broken.call('GET', '/base/sandbox/services/db')).toBe('503 {}');
});

test('questions are asked one after another, with a pause', async () => {
  let open = 0;
  let most = 0;
  await using it = await withAnswers(async () => {
    open += 1;
    most = Math.max(most, open);
    await new Promise(setImmediate);
    open -= 1;
    return { output: '' };
  });
  const began = performance.now();
  await Promise.all(Array.from({ length: 10 }, () => it.call('GET', '/base/sandbox/services/db')));
  expect(most).toBe(1);
  expect(performance.now() - began).toBeGreaterThan(150);
});
