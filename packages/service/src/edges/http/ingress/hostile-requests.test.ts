/** Tests requests that no provider sends. */
import { createHmac } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../../../test/automations.ts';
import { sendRaw } from '../../../../test/raw-http.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';

const service = await openTestService();
const { factory, base, create, send, log, labels, reset } = await testWebhooks(service);
beforeEach(reset);

const rawOf = ({ secret }: { readonly secret?: string | undefined }, ...headers: string[]) => [
  `authorization: Bearer ${secret}`,
  ...headers,
];

describe('a request that HTTP does not allow', () => {
  test.each([
    ['headers over 16 KB', 431, [`x-a: ${'a'.repeat(17 * 1024)}`]],
    ['a bare carriage return in the id', 400, ['x-service-delivery-id: a\rset-cookie: b', 'content-length: 2']],
    ['a NUL in the id', 400, ['x-service-delivery-id: a\0b', 'content-length: 2']],
    ['two lengths', 400, ['content-length: 2', 'content-length: 3']],
    ['a length and chunks', 400, ['content-length: 2', 'transfer-encoding: chunked']],
    ['a negative length', 400, ['content-length: -2']],
  ])('is refused and not logged as a delivery: %s', async (_what, status, headers) => {
    const webhook = await create();
    const [head] = await sendRaw(webhook.url, rawOf(webhook, ...headers), '{}');
    expect(head).toContain(` ${status} `);
    expect(head).not.toMatch(/set-cookie/i);
    expect(await labels(webhook)).toEqual([]);
    expect((await send(webhook)).status).toBe(202);
  });
});

test.each([
  ['one header', [`x-a: ${'a'.repeat(1024 * 1024)}`]],
  ['a thousand headers', Array.from({ length: 1024 }, (_, n) => `x-${n}: ${'a'.repeat(1015)}`)],
])('a megabyte in %s is cut off, and leaves no delivery', async (_what, headers) => {
  const webhook = await create();
  // The sender is still sending when the service answers, so it may get a connection reset instead of the answer.
  const [head] = await sendRaw(webhook.url, rawOf(webhook, ...headers), '{}').catch(() => ['']);
  expect(head === '' || head?.includes(' 431 ')).toBe(true);
  expect(await labels(webhook)).toEqual([]);
  expect((await send(webhook)).status).toBe(202);
});

describe('a body', () => {
  test.each([
    ['a lone surrogate in UTF-8', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['an overlong character', new Uint8Array([0x22, 0xc0, 0xaf, 0x22])],
    ['UTF-16', new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])],
    ['a deep value that does not end', '['.repeat(200_000)],
    ['a bare control character in a text', '"\u001b[2J"'],
  ])('gets 400 for %s', async (_what, body) => {
    const webhook = await create();
    expect((await send(webhook, { body })).status).toBe(400);
    expect(await labels(webhook)).toEqual(['REJECTED_INVALID_JSON']);
  });

  test('that is absent and has no length gets 400', async () => {
    const webhook = await create();
    const [answer] = await sendRaw(webhook.url, rawOf(webhook, 'connection: close'));
    expect(answer).toContain(' 400 ');
    expect(await labels(webhook)).toEqual(['REJECTED_INVALID_JSON']);
  });

  test('in small chunks is accepted, and gets 400 if the last chunk does not arrive', async () => {
    const webhook = await create();
    const head = rawOf(webhook, 'transfer-encoding: chunked', 'connection: close');
    const [answer] = await sendRaw(webhook.url, head, '1\r\n{\r\n1\r\n}\r\n0\r\n\r\n');
    expect(answer).toContain(' 202 ');
    const [broken] = await sendRaw(webhook.url, head, '1\r\n{\r\nzz\r\n');
    expect(broken).toContain(' 400 ');
    expect(await labels(webhook)).toEqual(['ACCEPTED']);
  });

  test('with markup is answered as JSON that no browser shows as a page', async () => {
    const webhook = await create();
    const body = '{"a":"</script><script>alert(1)</script>"}';
    const { delivery_id: id } = (await send(webhook, { body, headers: { 'content-type': 'text/html' } })).body;
    const read = await service.request('GET', `${base}/${webhook.uid}/deliveries/${id}`);
    expect(read.headers.get('content-type')).toContain('application/json');
    expect(read.headers.get('x-content-type-options')).toBe('nosniff');
  });
});

test('no secret of a query string, a header or a body is in the log', async () => {
  const webhook = await create();
  const secrets = ['secret-in-query', 'secret-in-header', 'secret-in-body', 'secret-in-id'];
  const sent = {
    token: 'secret-in-header',
    body: '{"a": "secret-in-body"',
    headers: { 'x-service-delivery-id': 'secret-in-id' },
  };
  const url = `${webhook.url}?token=secret-in-query`;
  expect((await send({ ...webhook, url }, sent)).status).toBe(401);
  expect((await send({ ...webhook, url }, { ...sent, token: webhook.secret ?? '' })).status).toBe(400);
  expect((await send({ ...webhook, url }, { ...sent, method: 'PUT' })).status).toBe(405);
  const logged = service.logged.join('');
  expect(logged).toContain(webhook.uid);
  for (const secret of [...secrets, webhook.secret ?? '']) expect(logged).not.toContain(secret);
});

describe('a delivery that somebody has recorded and sends again', () => {
  test('of Standard Webhooks is refused if it has a new id, and counts as a duplicate if it has its original id', async () => {
    const webhook = await create({ auth_mode: 'signature', signature_scheme: 'standard_webhooks' });
    const at = new Date();
    const body = '{"recorded": true}';
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
      'webhook-signature': new StandardWebhook(webhook.secret ?? '').sign('msg_1', at, body),
    };
    const post = async (more: Record<string, string> = {}) =>
      (await send(webhook, { token: null, body, headers: { ...headers, ...more } })).status;
    expect(await post()).toBe(202);
    expect(await post({ 'webhook-id': 'msg_2' })).toBe(401);
    // The signature does not cover this header, so the signed id of the provider stays the identity.
    expect(await post({ 'x-service-delivery-id': 'another' })).toBe(202);
    expect((await log(webhook)).map(({ label }) => label)).toEqual(['DUPLICATE', 'REJECTED_AUTH', 'ACCEPTED']);
  });

  test('of another webhook is refused', async () => {
    const scheme = { auth_mode: 'signature', signature_scheme: 'github' };
    const [a, b] = [await create({ ...scheme, secret: 'secret-a' }), await create({ ...scheme, secret: 'secret-b' })];
    const headers = { 'x-hub-signature-256': `sha256=${createHmac('sha256', 'secret-a').update('{}').digest('hex')}` };
    expect((await send(a, { token: null, headers })).status).toBe(202);
    expect((await send(b, { token: null, headers })).status).toBe(401);
  });
});

describe('a sender that floods one webhook', () => {
  const statuses = async (count: number, one: (n: number) => Promise<{ readonly status: number }>) => {
    const answers = await Promise.all(Array.from({ length: count }, (_, n) => one(n)));
    return Object.groupBy(answers, ({ status }) => String(status));
  };

  test('does not reduce the budget, the log and the runs of another webhook', async () => {
    const [flooded, quiet] = [await create(), await create()];
    const { create: automate } = testAutomations(service, factory.uid);
    await automate([on(flooded)], { overlap: 'queue' });
    await automate([on(quiet)], { overlap: 'queue' });
    expect((await send(quiet, { body: '"before"' })).status).toBe(202);

    const accepted = await statuses(80, (n) => send(flooded, { body: `${n}` }));
    expect([accepted['202']?.length, accepted['429']?.length]).toEqual([60, 20]);
    const wrong = await statuses(80, () => send(quiet, { token: 'wrong' }));
    expect([wrong['401']?.length, wrong['429']?.length]).toEqual([60, 20]);

    expect((await send(quiet, { body: '"after"' })).status).toBe(202);
    const ofQuiet = (await log(quiet, '?label=ACCEPTED')).map(({ automations }) => automations?.[0]);
    expect(ofQuiet).toEqual([
      expect.objectContaining({ reason: 'waits: 1 of 1 runs are live' }),
      expect.objectContaining({ run_id: expect.any(String) }),
    ]);
    const ofFlooded = await log(flooded, '?limit=100&label=ACCEPTED');
    const reasons = ofFlooded.map(({ automations }) => automations?.[0]?.reason ?? 'started');
    const many = Object.groupBy(reasons, (reason) => reason.split(':')[0] ?? '');
    expect([many.started?.length, many.waits?.length, many.skipped?.length]).toEqual([1, 10, 49]);
    expect(many.skipped?.[0]).toBe('skipped: 1 of 1 runs are live, and 10 fires wait already');
  });
});
