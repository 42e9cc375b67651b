import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { connectTo, headOf, sendRaw } from '../../../../test/raw-http.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';

const service = await openTestService();
const { create, send, labels, reset } = await testWebhooks(service);
beforeEach(reset);
const maxBytes = 256 * 1024;

describe('slow senders', () => {
  test('get 408 for a body that stops, even with the token, and create no delivery', async () => {
    const webhook = await create();
    const head = [`authorization: Bearer ${webhook.secret}`, 'content-length: 100'];
    const [answer] = await sendRaw(webhook.url, head, '{');
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toMatch(/^connection: close$/im);
    expect(await labels(webhook)).toEqual([]);
  });

  test('with wrong tokens do not delay webhooks or the API', async () => {
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
      // Now all memory of these senders is in use, and the queue is full, so further requests are refused at once.
      await expect.poll(() => refused).toBeGreaterThanOrEqual(20);
      for (const each of [webhook, other]) expect((await send(each, { body: '1' })).status).toBe(202);
      expect((await service.request('GET', '/agent/runs')).status).toBe(200);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test('without the secret of a signed webhook do not block its deliveries', async () => {
    const secret = 'secret-of-github';
    const [webhook, other] = await Promise.all(
      [1, 2].map(() => create({ auth_mode: 'signature', signature_scheme: 'github', secret })),
    );
    if (!webhook || !other) throw new Error('no webhook');
    const sockets: Socket[] = [];
    const ended = new Set<Socket>();
    const hold = (count: number, announced: number) => {
      for (let i = 0; i < count; i += 1) {
        const socket = connectTo(webhook.url);
        const end = () => void ended.add(socket);
        socket
          .on('error', () => undefined)
          .on('data', end)
          .on('close', end);
        const head = [`x-hub-signature-256: sha256=${'0'.repeat(64)}`, `content-length: ${announced}`];
        socket.write(`${headOf(webhook.url, head)}{`);
        sockets.push(socket);
      }
    };
    const deliver = async (to: typeof webhook, body: string) => {
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
      return (await send(to, { body, token: null, headers: { 'x-hub-signature-256': signature } })).status;
    };
    try {
      for (const [count, announced] of [
        [60, maxBytes],
        [99, 16 * 1024],
      ] as const) {
        ended.clear();
        hold(count, announced);
        // The other requests fill the memory, and also the queue if the case has one.
        await expect.poll(() => ended.size).toBeGreaterThanOrEqual(3);
        const body = JSON.stringify('a'.repeat(announced - 3));
        expect(await Promise.all([deliver(webhook, body), deliver(other, body)])).toEqual([202, 202]);
      }
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test('are limited in total and for one webhook, and thousands of them block no delivery', async () => {
    const signed = { auth_mode: 'signature', signature_scheme: 'github', secret: 'secret-of-github' };
    const webhooks = await Promise.all(Array.from({ length: 18 }, (_, n) => create(n % 2 === 0 ? {} : signed)));
    const [first, second] = [await create(), await create(signed)];
    const open = new Set<Socket>();
    const hold = (url: string, count: number) => {
      for (let i = 0; i < count; i += 1) {
        const socket = connectTo(url);
        socket.on('error', () => undefined).on('data', () => undefined);
        socket.once('connect', () => open.add(socket)).once('close', () => open.delete(socket));
        // Send only the first byte of the body, so that the service waits for the remaining bytes.
        socket.write(`${headOf(url, ['content-length: 100'])}{`);
        all.push(socket);
      }
    };
    const all: Socket[] = [];
    const body = '{}';
    const signature = `sha256=${createHmac('sha256', 'secret-of-github').update(body).digest('hex')}`;
    const deliver = async () => [
      (await send(first, { body: `${Math.random()}` })).status,
      (await send(second, { body, token: null, headers: { 'x-hub-signature-256': signature } })).status,
      (await service.request('GET', '/agent/runs')).status,
    ];
    try {
      hold(first.url, 150);
      hold(second.url, 150);
      await expect.poll(() => open.size).toBeLessThanOrEqual(2 * 100);
      expect(await deliver()).toEqual([202, 202, 200]);
      for (const { url } of webhooks) hold(url, 100);
      expect(all.length).toBeGreaterThanOrEqual(2_000);
      await expect.poll(() => all.filter(({ connecting }) => connecting).length).toBe(0);
      await expect.poll(() => open.size).toBeLessThanOrEqual(500);
      expect(await deliver()).toEqual([202, 202, 200]);
    } finally {
      for (const socket of all) socket.destroy();
    }
  });
});
