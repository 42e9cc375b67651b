/** Tests methods other than POST, on the port of the API and on the port for senders. */
import { once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { connectTo, headOf, sendRaw } from '../../../../test/raw-http.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { newUid } from '../../../team/access/teams/uid.ts';
import { buildIngressApp } from '../app.ts';

const service = await openTestService();
const { create, send, labels, reset } = await testWebhooks(service);
beforeEach(reset);
const ingress = closeAtEnd(buildIngressApp(service.deps));
const origins = { API: service.baseUrl, senders: await ingress.listen({ host: '127.0.0.1', port: 0 }) };

/** A preflight request of a browser, which asks whether the page may send a request. */
const asked = ['origin: https://example.com', 'access-control-request-method: POST'];
const methods = ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND'];

describe.each(Object.entries(origins))('the port of the %s', (_, origin) => {
  test.each(methods)(
    'answers %s with 405 and Allow, even if there is no webhook, and does not read the body',
    async (method) => {
      const webhook = await create();
      const paths = [webhook.uid, `${webhook.uid}/${webhook.secret}`, newUid(), 'no-uid'];
      const headers = [...asked, `authorization: Bearer ${webhook.secret}`];
      const answers = new Set<string>();
      for (const path of paths) {
        for (const rest of [['connection: close'], ['content-length: 100000000'], ['transfer-encoding: chunked']]) {
          const [head, body] = await sendRaw(`${origin}/webhooks/w/${path}`, [...headers, ...rest], '', method);
          expect(head).toMatch(/^HTTP\/1\.1 405 /);
          expect(head.match(/^allow: .*$/gim)).toEqual(['allow: POST']);
          expect(head).not.toMatch(/^access-control-/im);
          expect(body === '').toBe(method === 'HEAD');
          if (body !== '') answers.add(body.replace(/"(?:trace_id|instance)":"[^"]*"/g, ''));
        }
      }
      expect(answers.size).toBe(method === 'HEAD' ? 0 : 1);
      expect(await labels(webhook)).toEqual([]);
    },
  );

  test('closes the connection of CONNECT, and refuses an unknown method', async () => {
    const { url } = await create();
    const at = url.replace(service.baseUrl, origin);
    expect(await sendRaw(at, asked, '', 'CONNECT')).toEqual(['', '']);
    expect((await sendRaw(at, asked, '', 'post'))[0]).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('accepts a POST with the header Upgrade, and sends no CORS headers, so web pages cannot read the answer', async () => {
    const webhook = await create();
    const at = { ...webhook, url: webhook.url.replace(service.baseUrl, origin) };
    const upgrade = ['connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQCAAAAAAIAAAAA'];
    const head = [
      ...asked,
      `authorization: Bearer ${webhook.secret}`,
      'content-length: 2',
      ...upgrade,
      'connection: close',
    ];
    const [answer] = await sendRaw(at.url, head, '{}');
    expect(answer).toMatch(/^HTTP\/1\.1 202 /);
    expect(answer).not.toMatch(/^access-control-/im);
    expect((await send(at, { body: '1', headers: { origin: 'https://example.com' } })).status).toBe(202);
    expect(await labels(webhook)).toEqual(['ACCEPTED', 'ACCEPTED']);
  });
});

test('the port for senders accepts senders while idle connections wait for a next request', async () => {
  const webhook = await create();
  const at = { ...webhook, url: webhook.url.replace(service.baseUrl, origins.senders) };
  const { server } = ingress;
  server.closeAllConnections();
  server.maxConnections = 2;
  const idle = [connectTo(at.url), connectTo(at.url)];
  for (const socket of idle) {
    socket.on('error', () => undefined).write(headOf(at.url, [], 'GET'));
    await once(socket, 'data');
  }
  const status = () =>
    send(at).then(
      (answer) => answer.status,
      () => 0,
    );
  await expect.poll(status).toBe(202);
  server.maxConnections = Number.POSITIVE_INFINITY;
  for (const socket of idle) socket.destroy();
});
