import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { makeBodyBudget } from './body-budget.ts';
import { type HeldBody, holdBody } from './request-bodies.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Starts a server that reads the body of each request. It answers a request only when the test calls the function of the request in `answers`. */
async function start(pace = { graceMs: 60_000, bytesPerSecond: 1 }) {
  const bodies = makeBodyBudget();
  const read: Promise<HeldBody>[] = [];
  const answers: (() => void)[] = [];
  const server = createServer((request, response) => {
    const owner = { teamId: 't', executionId: 'e' };
    read.push(holdBody(bodies, { request, response, owner, maxBytes: 16 * 1024 * 1024, pace }));
    answers.push(() => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const send = (announced: number | 'chunked', text: string | Buffer): Socket => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined);
    closing.push(() => socket.destroy());
    const length = announced === 'chunked' ? 'transfer-encoding: chunked' : `content-length: ${announced}`;
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${length}\r\n\r\n`);
    socket.write(text);
    return socket;
  };
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const nth = async (index: number): Promise<HeldBody> => {
    await expect.poll(() => read.length).toBeGreaterThan(index);
    return (await read[index]) as HeldBody;
  };
  return { send, nth, answers, count: () => read.length };
}

const textOf = (held: HeldBody) => (held.kind === 'body' ? held.bytes.toString() : held.kind);

test('the server reads a body with a Content-Length and a body in chunks', async () => {
  const server = await start();
  server.send(5, 'hello');
  expect(textOf(await server.nth(0))).toBe('hello');
  server.send('chunked', '5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n');
  expect(textOf(await server.nth(1))).toBe('hello, world');
});

test('the server reports whether a body is too large, is cut or arrives too slowly', async () => {
  const server = await start({ graceMs: 200, bytesPerSecond: 1000 });
  server.send(16 * 1024 * 1024 + 1, '');
  expect((await server.nth(0)).kind).toBe('too_large');
  server.send(5, 'he').end();
  expect((await server.nth(1)).kind).toBe('cut');
  server.send(5_000, 'he');
  expect((await server.nth(2)).kind).toBe('too_slow');
});

test('the server does not read a body while there is no memory for it', async () => {
  const server = await start();
  const size = 15 * 1024 * 1024;
  const first = server.send(size, 'x');
  await expect.poll(server.count).toBe(1);
  const second = server.send(size, Buffer.alloc(size, 'y'));
  await expect.poll(server.count).toBe(2);
  // The kernel's buffers take a part of the second body, but the server reads nothing from the socket. So the rest stays in the client.
  await expect.poll(() => second.writableLength).toBeGreaterThan(1024 * 1024);
  const before = second.writableLength;
  first.write(Buffer.alloc(size - 1, 'x'));
  expect((await server.nth(0)).kind).toBe('body');
  expect(second.writableLength).toBe(before);
  server.answers[0]?.();
  expect((await server.nth(1)).kind).toBe('body');
});

test('the server frees the memory of a body whose client has disconnected', async () => {
  const server = await start();
  const size = 15 * 1024 * 1024;
  for (let n = 0; n < 5; n += 1) {
    const socket = server.send(size, 'x');
    await expect.poll(server.count).toBe(n + 1);
    socket.destroy();
    expect((await server.nth(n)).kind).toBe('cut');
  }
});
