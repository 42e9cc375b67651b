import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { paceReading, type ReadingPace } from './reading-pace.ts';

let server: WebSocketServer;
let client: WebSocket;
let accepted: WebSocket;
let pace: ReadingPace;
beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const connected = once(server, 'connection');
  client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  [[accepted]] = await Promise.all([connected, once(client, 'open')]);
  pace = paceReading(accepted);
});
afterEach(() => {
  client.terminate();
  accepted.terminate();
  server.close();
});

const limit = { timeout: 60_000 };

test('the socket reads no more messages while earlier messages wait for their effects, and reads all messages later', async () => {
  const sent = 20_000;
  const effects = Promise.withResolvers<void>();
  let read = 0;
  accepted.on('message', () => {
    read += 1;
    pace.work(effects.promise, 1000);
  });
  const text = 'x'.repeat(1000);
  for (let n = 0; n < sent; n += 1) client.send(text);
  await expect.poll(() => accepted.isPaused, limit).toBe(true);
  // Messages that arrived in one piece with the last message are read too.
  expect(read).toBeLessThan(1000);
  effects.resolve();
  await expect.poll(() => read, limit).toBe(sent);
  expect(accepted.isPaused).toBe(false);
});

test('the socket reads no messages of a worker while the worker does not read the answers', async () => {
  client.pause();
  const text = 'x'.repeat(100_000);
  for (let n = 0; n < 1000; n += 1) pace.send(text);
  await expect.poll(() => accepted.isPaused, limit).toBe(true);
  client.resume();
  await expect.poll(() => accepted.isPaused, limit).toBe(false);
});
