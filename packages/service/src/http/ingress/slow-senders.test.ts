import type { Socket } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { connectTo, headOf } from '../../../test/raw-http.ts';
import { openTestService } from '../../../test/service.ts';
import { testWebhooks } from '../../../test/webhooks.ts';

const service = await openTestService();
const { create, send, reset } = await testWebhooks(service);
beforeEach(reset);
const maxBytes = 256 * 1024;

describe('slow senders', () => {
  test('with wrong tokens keep neither the webhook, nor others, nor the API from answering', async () => {
    const [webhook, other] = [await create(), await create()];
    const sockets: Socket[] = [];
    let refused = 0;
    const hold = (count: number, token: string) => {
      for (let i = 0; i < count; i += 1) {
        const socket = connectTo(webhook.url);
        socket.on('error', () => undefined);
        socket.once('data', (data) => {
          if (String(data).includes(' 429 ')) refused += 1;
        });
        socket.write(headOf(webhook.url, [`authorization: Bearer ${token}`, `content-length: ${maxBytes}`]));
        sockets.push(socket);
      }
    };
    hold(60, 'wrong');
    try {
      // Their room is full now, and so many wait for it that the others are refused at once.
      await expect.poll(() => refused).toBeGreaterThanOrEqual(20);
      for (const each of [webhook, other]) expect((await send(each, { body: '1' })).status).toBe(202);
      expect((await service.request('GET', '/agent/runs')).status).toBe(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test('get 429 at once beyond the requests that one webhook may hold', async () => {
    const [webhook, other] = [await create(), await create()];
    const sockets: Socket[] = [];
    let refused = 0;
    for (let i = 0; i < 150; i += 1) {
      const socket = connectTo(webhook.url);
      socket.on('error', () => undefined);
      socket.once('data', (data) => {
        if (String(data).includes(' 429 ')) refused += 1;
      });
      socket.write(headOf(webhook.url, ['content-length: 100']));
      sockets.push(socket);
    }
    try {
      await expect.poll(() => refused).toBeGreaterThanOrEqual(50);
      expect((await send(other)).status).toBe(202);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });
});
