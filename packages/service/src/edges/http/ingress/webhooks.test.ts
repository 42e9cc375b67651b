import { createHmac, randomUUID } from 'node:crypto';
import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { sendRaw } from '../../../../test/raw-http.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { newUid } from '../../../team/access/teams/uid.ts';

const service = await openTestService();
const { base, create, send, log, labels, reset } = await testWebhooks(service);
beforeEach(reset);

const maxBytes = 256 * 1024;
const ofSize = (bytes: number) => `"${'a'.repeat(bytes - 2)}"`;

describe('a delivery', () => {
  test('gets 202 with its id, and the log shows its size, identity and payload', async () => {
    const webhook = await create();
    const answer = await send(webhook, { body: '{"a": 1}', headers: { 'x-service-delivery-id': 'one' } });
    expect([answer.status, Object.keys(answer.body)]).toEqual([202, ['delivery_id']]);
    expect(await log(webhook)).toEqual([
      {
        delivery_id: answer.body.delivery_id,
        label: 'ACCEPTED',
        size_bytes: 8,
        identity: 'one',
        received_at: expect.any(String),
      },
    ]);
    const read = await service.request('GET', `${base}/${webhook.uid}/deliveries/${answer.body.delivery_id}`);
    expect(read.body).toMatchObject({ label: 'ACCEPTED', payload: { a: 1 } });
  });

  test.each([
    'null',
    'true',
    '-0',
    '1e999',
    '"x"',
    '"\\ud800"',
    '"\\u0000"',
    '[]',
    ' {} ',
    '{"a":1,"a":2}',
    '{"__proto__":{}}',
  ])('gets 202 for the JSON %s, which is returned unchanged', async (body) => {
    const webhook = await create();
    const { status, body: answer } = await send(webhook, { body, headers: { 'content-type': 'text/plain' } });
    expect(status).toBe(202);
    const read = await service.request('GET', `${base}/${webhook.uid}/deliveries/${answer.delivery_id}`);
    expect(read.text.endsWith(`,"payload":${body}}`)).toBe(true);
    const bytes = await service.request('GET', `${base}/${webhook.uid}/deliveries/${answer.delivery_id}/payload`);
    expect([bytes.status, bytes.text, bytes.headers.get('cache-control')]).toEqual([200, body, 'private, no-store']);
    expect(bytes.headers.get('content-disposition')).toContain('attachment');
  });

  test('returns the bytes of a range, and 416 for a range beyond its end', async () => {
    const webhook = await create();
    const { delivery_id: id } = (await send(webhook, { body: '{"a":1}' })).body;
    const ask = (range: string) =>
      service.request('GET', `${base}/${webhook.uid}/deliveries/${id}/payload`, { headers: { range } });
    const part = await ask('bytes=1-3');
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, '"a"', 'bytes 1-3/7']);
    expect((await ask('bytes=7-')).status).toBe(416);
  });

  test('that was refused has no body, and a delivery of another webhook is not found', async () => {
    const [webhook, other] = [await create(), await create()];
    const { delivery_id: id } = (await send(webhook)).body;
    await send(webhook, { body: '{' });
    const refused = (await log(webhook))[0]?.delivery_id;
    const statuses = [];
    for (const path of [
      `${webhook.uid}/deliveries/${refused}`,
      `${other.uid}/deliveries/${id}`,
      `${webhook.uid}/deliveries/x`,
    ])
      statuses.push((await service.request('GET', `${base}/${path}/payload`)).status);
    expect(statuses).toEqual([404, 404, 404]);
  });

  test('gets 202 when it is nested 10,000 deep', async () => {
    const webhook = await create();
    expect((await send(webhook, { body: '['.repeat(10_000) + ']'.repeat(10_000) })).status).toBe(202);
  });

  test.each([
    ['an empty body', ''],
    ['broken JSON', '{"a":'],
    ['NaN', 'NaN'],
    ['two values', '1 2'],
    ['two byte order marks', '\ufeff\ufeff{}'],
    ['another charset', new Uint8Array([0x22, 0xe4, 0x22])],
    ['a form', 'payload=%7B%7D'],
  ])('gets 400 for %s', async (_, body) => {
    const webhook = await create();
    await expectProblem(400, webhook, { body });
    expect(await labels(webhook)).toEqual(['REJECTED_INVALID_JSON']);
  });

  test.each([
    ['no token', null],
    ['a wrong token', 'wrong'],
    ['an empty token', ''],
  ])('gets 401 for %s', async (_, token) => {
    const webhook = await create();
    await expectProblem(401, webhook, { token });
    expect(await labels(webhook)).toEqual(['REJECTED_AUTH']);
  });

  test('has at most 262,144 bytes', async () => {
    const webhook = await create();
    expect((await send(webhook, { body: ofSize(maxBytes) })).status).toBe(202);
    const [head, rest] = await sendRaw(webhook.url, [
      `authorization: Bearer ${webhook.secret}`,
      `content-length: ${maxBytes + 1}`,
    ]);
    expect(head).toContain(' 413 ');
    expect(rest).toContain('"status":413');
    expect((await log(webhook))[0]).toMatchObject({ label: 'REJECTED_TOO_LARGE', size_bytes: maxBytes + 1 });
  });

  test('gets 413 also in chunks, before its sender is authenticated', async () => {
    const webhook = await create();
    const chunk = `10000\r\n${'a'.repeat(0x10000)}\r\n`;
    const [head] = await sendRaw(webhook.url, ['transfer-encoding: chunked'], chunk.repeat(5));
    expect(head).toContain(' 413 ');
    expect(await labels(webhook)).toEqual(['REJECTED_TOO_LARGE']);
  });

  async function expectProblem(status: number, webhook: WebhookWithSecret, sent: Parameters<typeof send>[1]) {
    const answer = await send(webhook, sent);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      status,
      'application/problem+json; charset=utf-8',
    ]);
  }
});

describe('the identity of a delivery', () => {
  const idOf = async (webhook: WebhookWithSecret, headers: Record<string, string>, body = '{}') => {
    const answer = await send(webhook, { headers, body });
    expect(answer.status).toBe(202);
    return (await log(webhook))[0];
  };

  test('comes from the header of the webhook, then from the sender, then from the body', async () => {
    const webhook = await create({ delivery_id_header: 'X-Event-Id' });
    const all = { 'x-event-id': 'event', 'x-service-delivery-id': 'own', 'x-warp-delivery-id': 'alias' };
    expect(await idOf(webhook, all)).toMatchObject({ label: 'ACCEPTED', identity: 'event' });
    expect(await idOf(webhook, { ...all, 'x-event-id': ' ' })).toMatchObject({ label: 'ACCEPTED', identity: 'own' });
    expect(await idOf(webhook, { 'x-warp-delivery-id': 'alias' })).toMatchObject({
      label: 'ACCEPTED',
      identity: 'alias',
    });
    const ofBody = await idOf(webhook, {});
    expect(ofBody).toMatchObject({ label: 'ACCEPTED', identity: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) });
    expect(await idOf(webhook, {})).toMatchObject({ label: 'DUPLICATE', identity: ofBody?.identity });
    // A delivery with an id from the sender is not a duplicate of a delivery without an id, even if the id looks like the hash of its body.
    expect(await idOf(webhook, { 'x-event-id': ofBody?.identity ?? '' })).toMatchObject({ label: 'ACCEPTED' });
    expect(await idOf(webhook, { 'x-event-id': 'event' }, '{"other": true}')).toMatchObject({ label: 'DUPLICATE' });
  });

  test('belongs to one webhook', async () => {
    const [a, b] = [await create(), await create()];
    expect([await idOf(a, {}), await idOf(b, {})].map((entry) => entry?.label)).toEqual(['ACCEPTED', 'ACCEPTED']);
  });

  test('is shown as a hash if it could harm a terminal, a page or a log', async () => {
    const webhook = await create();
    for (const id of ['\u009b31m', 'a'.repeat(2_000), '<b> </b>'])
      expect((await idOf(webhook, { 'x-service-delivery-id': id }))?.identity).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  test('of a refused delivery can be used again', async () => {
    const webhook = await create();
    const headers = { 'x-service-delivery-id': 'one' };
    expect((await send(webhook, { headers, body: '{' })).status).toBe(400);
    expect((await send(webhook, { headers, token: 'wrong' })).status).toBe(401);
    expect(await idOf(webhook, headers)).toMatchObject({ label: 'ACCEPTED' });
  });
});

describe('a webhook that does not accept deliveries', () => {
  test('answers the same 404 if it is unknown, disabled or deleted, without reading the body', async () => {
    const [disabled, deleted] = [await create(), await create()];
    await service.request('POST', `${base}/${disabled.uid}/disable`);
    await service.request('DELETE', `${base}/${deleted.uid}`);
    const unknown = { url: `${service.baseUrl}/webhooks/w/${newUid()}`, secret: 'x' };
    const malformed = { url: `${service.baseUrl}/webhooks/w/short`, secret: 'x' };
    const answers = await Promise.all([disabled, deleted, unknown, malformed].map((webhook) => send(webhook)));
    const seen = answers.map(({ status, body }) => ({ status, ...(body as object), instance: '', trace_id: '' }));
    expect(seen[0]).toMatchObject({ status: 404, error_code: 'resource_not_found' });
    for (const each of seen) expect(each).toEqual(seen[0]);
    // The service answers after the headers, although the body never arrives.
    const [head] = await sendRaw(unknown.url, ['content-length: 100']);
    expect(head).toMatch(/ 404 [\s\S]*connection: close/i);
  });
});

describe('a url_token webhook', () => {
  test('accepts only the token in its URL', async () => {
    const webhook = await create({ auth_mode: 'url_token' });
    expect(webhook.url).toBe(`${service.baseUrl}/webhooks/w/${webhook.uid}/${webhook.secret}`);
    expect((await send(webhook, { token: null })).status).toBe(202);
    const bare = { ...webhook, url: `${service.baseUrl}/webhooks/w/${webhook.uid}` };
    expect((await send(bare)).status).toBe(401);
    expect((await send({ ...bare, url: `${bare.url}/wrong` }, { token: null })).status).toBe(401);
    expect((await send({ ...bare, url: `${bare.url}?token=${webhook.secret}` }, { token: null })).status).toBe(401);
  });

  test('shows its token in no log and no answer', async () => {
    const webhook = await create({ auth_mode: 'url_token' });
    const secret = webhook.secret ?? '';
    const encoded = webhook.url.replace('/webhooks/w/', '/%77ebhooks/%77/');
    const answers = [
      await send(webhook, { token: null, body: '{' }),
      await send({ ...webhook, url: `${webhook.url}/more` }, { token: null }),
      await send({ ...webhook, url: encoded }, { token: null, body: '[' }),
      await send({ ...webhook, url: `${webhook.url}%` }, { token: null }),
      await send({ ...webhook, url: webhook.url.replace('/webhooks/', '/api/v1/webhooks/') }, { token: null }),
      await send({ ...webhook, url: webhook.url.replace('/webhooks/', '/webhook/') }, { token: null }),
      await send({ ...webhook, url: webhook.url.replace(`/${secret}`, `;${secret}`) }, { token: null }),
      await send({ ...webhook, url: webhook.url.replace(`/${secret}`, `%5C${secret}`) }, { token: null }),
      await send(webhook, { method: 'GET', token: null }),
      await service.request('GET', `${base}/${webhook.uid}`),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 404, 400, 400, 404, 404, 404, 404, 405, 200]);
    for (const { text } of answers) expect(text).not.toContain(secret);
    expect(service.logged.join('')).not.toContain(secret);
    expect(service.logged.join('')).toContain(`/webhooks/w/${webhook.uid}/{token}`);
    expect(answers.at(-1)?.body).toMatchObject({ url: `${service.baseUrl}/webhooks/w/${webhook.uid}/{token}` });
  });

  test('is the only mode with a token in its URL', async () => {
    const webhook = await create();
    expect((await send({ ...webhook, url: `${webhook.url}/${webhook.secret}` })).status).toBe(401);
  });
});

describe('the rotation of a secret', () => {
  test('ends the old secret at once, or after the requested time', async () => {
    const webhook = await create();
    const rotate = async (body: object) =>
      (await service.request<WebhookWithSecret>('POST', `${base}/${webhook.uid}/rotate-secret`, { body })).body;
    const second = await rotate({});
    expect((await send(webhook, { body: '1' })).status).toBe(401);
    expect((await send(second, { body: '2' })).status).toBe(202);
    const third = await rotate({ grace_seconds: 60 });
    expect((await send(second, { body: '3' })).status).toBe(202);
    expect((await send(third, { body: '4' })).status).toBe(202);
    await service.deps.db.query(`UPDATE webhooks SET version = version + 1, previous_secret_until = now()`);
    await expect.poll(async () => (await send(second, { body: randomUUID() })).status).toBe(401);
    expect((await send(third, { body: '6' })).status).toBe(202);
  });
});

test('a webhook of Slack accepts deliveries that are signed over the raw bytes, and answers the URL check', async () => {
  const webhook = await create({ auth_mode: 'signature', signature_scheme: 'slack', secret: 'signing-secret' });
  const sign = (body: string, at = Math.floor(Date.now() / 1000)) => ({
    'x-slack-request-timestamp': `${at}`,
    'x-slack-signature': `v0=${createHmac('sha256', 'signing-secret').update(`v0:${at}:${body}`).digest('hex')}`,
  });
  const body = '{ "type": "url_verification",\n"challenge": "3eZbrw1a" }';
  const checked = await send(webhook, { body, headers: sign(body), token: null });
  expect([checked.status, checked.body]).toEqual([200, { challenge: '3eZbrw1a' }]);
  expect((await send(webhook, { body, headers: sign(JSON.stringify(JSON.parse(body))), token: null })).status).toBe(
    401,
  );
  expect((await send(webhook, { body: '{}', headers: sign('{}'), token: null })).status).toBe(202);
  expect((await send(webhook, { body: '[]', headers: sign('[]', 1), token: null })).status).toBe(401);
});
