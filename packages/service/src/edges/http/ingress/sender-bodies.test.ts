/** Tests deliveries with bodies and headers that few senders use. */
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { openTestSenders } from '../../../../test/senders.ts';

const { asGithub, asStripe, create, factory, hmac, log, newest, payloadOf, secret, send, service, signed } =
  await openTestSenders();

describe('a body', () => {
  test('that is a form is read for GitHub, with a signature over its raw bytes', async () => {
    const webhook = await signed('github');
    const form =
      'payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%2C%22repository%22%3A%7B%22full_name%22%3A%22acme%2Fbilling%22%7D%2C%22commits%22%3A%5B%5D%7D';
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await send(webhook, asGithub(form, headers));
    expect(answer.status).toBe(202);
    expect(await payloadOf(webhook, answer.body.delivery_id)).toEqual({
      ref: 'refs/heads/main',
      repository: { full_name: 'acme/billing' },
      commits: [],
    });
    expect((await send(webhook, asGithub(form.slice(0, -1), headers))).status).toBe(400);
    expect((await send(webhook, { ...asGithub(form, headers), body: `${form}%20` })).status).toBe(401);
  });

  test('that is a form is read for interactions of Slack too', async () => {
    const webhook = await signed('slack');
    const body = `payload=${encodeURIComponent('{"type":"block_actions"}')}`;
    const at = String(Math.floor(Date.now() / 1000));
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': at,
      'x-slack-signature': `v0=${hmac(`v0:${at}:${body}`).digest('hex')}`,
    };
    const answer = await send(webhook, { token: null, body, headers });
    expect(await payloadOf(webhook, answer.body.delivery_id)).toEqual({ type: 'block_actions' });
  });

  test.each([
    ['application/x-www-form-urlencoded', 'payload=%7B%7D'],
    ['application/xml', '<a/>'],
    ['multipart/form-data; boundary=x', '--x'],
  ])('of another type gets 400 and the name of the setting to choose: %s', async (type, body) => {
    const webhook = await create();
    const answer = await send(webhook, { body, headers: { 'content-type': type } });
    const advice = expect.stringMatching(new RegExp(`${type.split(';')[0]}; choose JSON`.replaceAll('+', '\\+')));
    expect([answer.status, answer.body]).toEqual([400, expect.objectContaining({ detail: advice })]);
    expect(await newest(webhook)).toMatchObject({ label: 'REJECTED_INVALID_JSON', reason: advice });
  });

  test('a body with a byte order mark, or compressed, is stored as plain JSON; signature and hash cover the received bytes', async () => {
    const webhook = await signed('github', { duplicate_window_seconds: 0 });
    const json = '{"a":1}';
    const marked = Buffer.from(`\ufeff${json}`);
    const zipped = gzipSync(json);
    const zip = { 'content-encoding': 'gzip' };
    for (const sent of [asGithub(marked), asGithub(zipped, zip), asGithub(gzipSync(marked), zip)]) {
      const answer = await send(webhook, sent);
      expect([answer.status, await payloadOf(webhook, answer.body.delivery_id)]).toEqual([202, { a: 1 }]);
    }
    expect(new Set((await log(webhook)).map(({ identity }) => identity)).size).toBe(3);
    // A signature of the decompressed bytes is refused.
    const { headers } = asGithub(json, zip);
    expect((await send(webhook, { token: null, body: zipped, headers: headers ?? {} })).status).toBe(401);
  });

  test('that is compressed has at most 256 KB before and after decompression, and uses gzip', async () => {
    const webhook = await create();
    const headers = { 'content-encoding': 'gzip' };
    const ofSize = (bytes: number) => gzipSync(`"${'a'.repeat(bytes - 2)}"`);
    expect((await send(webhook, { body: ofSize(256 * 1024), headers })).status).toBe(202);
    expect((await send(webhook, { body: ofSize(256 * 1024 + 1), headers })).status).toBe(413);
    expect((await send(webhook, { body: gzipSync(Buffer.alloc(20 * 1024 * 1024)), headers })).status).toBe(413);
    expect((await send(webhook, { body: '{}', headers })).status).toBe(400);
    expect((await send(webhook, { body: '{}', headers: { 'content-encoding': 'br' } })).status).toBe(400);
    expect((await send(webhook, { body: ofSize(10), headers, token: 'wrong' })).status).toBe(401);
  });

  test('that is too large gets 413, and the log shows how to fix it', async () => {
    const [webhook, other] = [await signed('github'), await create()];
    const commits = Array.from({ length: 1500 }, (_, n) => ({
      id: String(n).padStart(40, '0'),
      message: 'a'.repeat(200),
    }));
    const body = JSON.stringify({ ref: 'refs/heads/main', commits });
    expect((await send(webhook, asGithub(body))).status).toBe(413);
    expect((await send(other, { body })).status).toBe(413);
    expect([await newest(webhook), await newest(other)]).toMatchObject([
      {
        label: 'REJECTED_TOO_LARGE',
        size_bytes: body.length,
        reason: expect.stringContaining('GitHub does not send it'),
      },
      { label: 'REJECTED_TOO_LARGE', reason: expect.stringContaining('at most 262144 bytes') },
    ]);
  });
});

describe('the identity of a delivery from a member of the body', () => {
  const attempt = (left: number) => JSON.stringify({ id: 'evt_1ABC', type: 'x', pending_webhooks: left });

  test('is used only if no header contains an identity', async () => {
    const [stripe, own] = [await signed('stripe'), await create({ delivery_id_path: 'data.0.key' })];
    for (const left of [2, 1]) expect((await send(stripe, asStripe(attempt(left)))).status).toBe(202);
    expect(await log(stripe)).toMatchObject([
      { label: 'DUPLICATE', identity: 'evt_1ABC' },
      { label: 'ACCEPTED', identity: 'evt_1ABC' },
    ]);
    await send(stripe, asStripe(attempt(0), { 'x-service-delivery-id': 'header' }));
    expect(await newest(stripe)).toMatchObject({ label: 'ACCEPTED', identity: 'header' });
    for (const key of ['7', '7.5', 'null', '{}', '""']) await send(own, { body: `{"data":[{"key":${key}}]}` });
    const identities = (await log(own)).map(({ identity }) => identity?.slice(0, 7));
    expect(identities).toEqual(['sha256:', 'sha256:', 'sha256:', 'sha256:', '7']);
  });
});

describe("the name of a delivery's event in a header", () => {
  test('is stored, can be filtered, and is in the envelope of the run', async () => {
    const webhook = await create({ auth_mode: 'url_token', event_header: 'X-Event-Key' });
    const filter = { webhook_ids: [webhook.uid], events: ['pullrequest:approved'] };
    const automation = { name: 'A', prompt: 'Look.', triggers: [{ provider: 'webhook', event: 'received', filter }] };
    await service.request('POST', `/factory/${factory.uid}/automations`, { body: automation });
    const body = '{"repository":{"full_name":"acme/billing"},"actor":{"nickname":"ann"}}';
    const deliver = async (event: Record<string, string>) => {
      await send(webhook, { token: null, body, headers: { ...event, 'x-service-delivery-id': JSON.stringify(event) } });
      return await newest(webhook);
    };
    const other = await deliver({ 'x-event-key': 'repo:push' });
    expect(other?.automations?.[0]?.reason).toContain('events: found "repo:push"; allowed: "pullrequest:approved"');
    expect((await deliver({}))?.automations?.[0]?.reason).toContain('no header names the event');
    const entry = await deliver({ 'x-event-key': 'pullrequest:approved' });
    expect(entry).toMatchObject({ event: 'pullrequest:approved', runs: [expect.any(String)] });
    const run = await service.request<{ prompt: string }>('GET', `/agent/runs/${entry?.runs?.[0]}`);
    expect(run.body.prompt).toContain('names its event: "pullrequest:approved".');
    expect((await deliver({ 'x-event-key': 'a\tb"' }))?.event).toBeUndefined();
  });

  test.each([
    ['github', { 'x-github-event': 'push' }, 'push'],
    ['sentry', { 'sentry-hook-resource': 'issue' }, 'issue'],
    ['shopify', { 'x-shopify-topic': 'orders/create' }, 'orders/create'],
    ['gitlab', { 'x-gitlab-event': 'Push Hook' }, 'Push Hook'],
    ['bitbucket', { 'x-event-key': 'repo:push' }, 'repo:push'],
  ])('comes from the header of %s', async (scheme, headers, event) => {
    const webhook = await signed(scheme);
    const hex = hmac('{}').digest('hex');
    const proofs = {
      'x-hub-signature-256': `sha256=${hex}`,
      'x-hub-signature': `sha256=${hex}`,
      'sentry-hook-signature': hex,
      'x-shopify-hmac-sha256': hmac('{}').digest('base64'),
      'x-gitlab-token': secret,
    };
    expect((await send(webhook, { token: null, headers: { ...proofs, ...headers } })).status).toBe(202);
    expect(await newest(webhook)).toMatchObject({ event });
  });
});
