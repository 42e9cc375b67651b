import { maxFactoryWebhooks } from '@runyard/contract/limits';
import { Webhook, type WebhookDelivery, WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { newUid } from '../../../team/access/teams/uid.ts';

const service = await openTestService();
const { db } = service.deps;
const { factory, base, create: createWebhook, send, log, labels, reset } = await testWebhooks(service);
/** Creates a webhook that feeds an automation. */
const create: typeof createWebhook = async (members) => {
  const webhook = await createWebhook(members);
  const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [webhook.uid] } }];
  const body = { name: webhook.uid, prompt: 'Look.', triggers };
  expect((await service.request('POST', `/factory/${factory.uid}/automations`, { body })).status).toBe(201);
  return webhook;
};
const agent = await service.newKey({ kind: 'agent' });

beforeEach(async () => {
  await reset();
  await db.query('DELETE FROM automations');
  await db.query('DELETE FROM runs');
});

/** Returns the runs of deliveries, oldest first, with the payloads that they got. */
const started = () =>
  db.query<{ id: string; delivery: string; webhook: string; payload: string }>(
    `SELECT r.id, r.metadata ->> 'delivery_id' AS delivery, r.metadata ->> 'webhook_uid' AS webhook,
       convert_from(a.content, 'UTF8') AS payload
     FROM runs r JOIN attachments a ON a.run_id = r.id ORDER BY r.id`,
  );

describe('POST /factory/{uid}/webhooks', () => {
  test('answers 201 with a secret of 256 bits, which is stored sealed and shown once', async () => {
    for (const auth_mode of ['token', 'url_token']) {
      const { secret = '', ...made } = WebhookWithSecret.parse(await create({ auth_mode }));
      expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
      const read = await service.request('GET', `${base}/${made.uid}`);
      expect(Webhook.parse(read.body)).toEqual({ ...made, url: made.url.replace(secret, '{token}') });
      const [dump] = await db.query<{ dump: string }>('SELECT json_agg(w)::text AS dump FROM webhooks w');
      expect(dump?.dump).not.toContain(secret);
      expect(dump?.dump).not.toContain(Buffer.from(secret).toString('hex'));
    }
  });

  test('creates one webhook for two requests with the same Idempotency-Key, and returns the secret to both', async () => {
    const ask = (name: string) =>
      service.request<WebhookWithSecret>('POST', base, { body: { name }, headers: { 'idempotency-key': 'w-1' } });
    const [a, b] = await Promise.all([ask('a'), ask('a')]);
    expect(a.body).toEqual(b.body);
    expect(a.body.secret).toBeDefined();
    const [kept] = await db.query<{ text: string }>('SELECT response::text AS text FROM idempotency_keys');
    expect(kept?.text).not.toContain(a.body.secret);
    await service.problem(409, 'POST', base, { body: { name: 'b' }, headers: { 'idempotency-key': 'w-1' } });
  });

  test('keeps a signature webhook disabled until its secret is set', async () => {
    const webhook = await create({ auth_mode: 'signature', signature_scheme: 'github' });
    expect(webhook).toMatchObject({ enabled: false, signature_scheme: 'github' });
    expect(webhook).not.toHaveProperty('secret');
    const path = `${base}/${webhook.uid}`;
    await service.problem(409, 'POST', `${path}/enable`);
    await service.problem(409, 'PATCH', path, { body: { enabled: true } });
    await service.problem(400, 'POST', `${path}/rotate-secret`);
    await service.request('POST', `${path}/rotate-secret`, { body: { secret: 'from GitHub' } });
    expect((await service.request('POST', `${path}/enable`)).body).toMatchObject({ enabled: true });
  });

  test('generates the secret of Standard Webhooks', async () => {
    const webhook = await create({ auth_mode: 'signature', signature_scheme: 'standard_webhooks' });
    expect(webhook).toMatchObject({ enabled: true, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/) });
  });

  test.each([
    ['name', {}],
    ['auth_mode', { name: 'a', auth_mode: 'basic' }],
    ['signature_scheme', { name: 'a', auth_mode: 'signature' }],
    ['signature_scheme', { name: 'a', signature_scheme: 'github' }],
    ['signature_scheme', { name: 'a', auth_mode: 'signature', signature_scheme: 'acme' }],
    ['secret', { name: 'a', secret: 'short' }],
    ['secret', { name: 'a', secret: 'with a space in it' }],
    ['secret', { name: 'a', auth_mode: 'url_token', secret: 'not/safe/in/a/path' }],
    ['secret', { name: 'a', auth_mode: 'signature', signature_scheme: 'standard_webhooks', secret: 'whsec_!!!' }],
    ['secret_name', { name: 'a', secret_name: 'a b' }],
    ['delivery_id_header', { name: 'a', delivery_id_header: 'a b' }],
    ['delivery_id_header', { name: 'a', delivery_id_header: 'Authorization' }],
    ['delivery_id_header', { name: 'a', delivery_id_header: 'X-Hub-Signature-256' }],
    ['delivery_id_header', { name: 'a', delivery_id_header: 'x-gitlab-token' }],
    ['delivery_id_header', { name: 'a', delivery_id_header: 'Cookie' }],
  ])('answers 400 for a wrong %s: %o', async (member, body) => {
    const { errors } = await service.problem(400, 'POST', base, { body });
    expect(errors?.map(({ path }) => path)).toContain(member);
  });

  test(`creates at most ${maxFactoryWebhooks} webhooks for a factory, also concurrently`, async () => {
    const answers = await Promise.all(
      Array.from({ length: maxFactoryWebhooks + 2 }, () => service.request('POST', base, { body: { name: 'a' } })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(maxFactoryWebhooks);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(2);
  });
});

describe('a change', () => {
  test('of name and header appears in the answer, and another team does not see the webhook', async () => {
    const { uid } = await create({ delivery_id_header: 'X-Id' });
    const body = { name: 'b', delivery_id_header: null };
    await service.problem(404, 'PATCH', `${base}/${uid}`, { body, key: service.otherKey });
    await service.problem(404, 'PATCH', `${base}/${newUid()}`, { body });
    await service.problem(403, 'PATCH', `${base}/${uid}`, { body, key: agent });
    const changed = await service.request<Webhook>('PATCH', `${base}/${uid}`, { body });
    expect(changed.body).toMatchObject({ name: 'b' });
    expect(changed.body).not.toHaveProperty('delivery_id_header');
  });

  test('that disables or enables a webhook takes effect at once', async () => {
    const webhook = await create();
    for (const round of [1, 2]) {
      await service.request('POST', `${base}/${webhook.uid}/disable`);
      expect((await send(webhook, { body: `${round}` })).status).toBe(404);
      await service.request('POST', `${base}/${webhook.uid}/enable`);
      expect((await send(webhook, { body: `${round}` })).status).toBe(202);
    }
  });

  test('that deletes the factory ends its webhooks at once', async () => {
    const factory = (await service.request<{ uid: string }>('POST', '/factory', { body: { name: 'b' } })).body;
    const path = `/factory/${factory.uid}/webhooks`;
    const webhook = (await service.request<WebhookWithSecret>('POST', path, { body: { name: 'a' } })).body;
    expect((await send(webhook)).status).toBe(202);
    await service.request('DELETE', `/factory/${factory.uid}`);
    expect((await send(webhook)).status).toBe(404);
    await service.problem(404, 'GET', path);
  });
});

describe('an accepted delivery', () => {
  test('is processed by the automations in the same transaction, and shows their outcomes', async () => {
    const webhook = await create();
    const { body } = await send(webhook, { body: '{"a":[1]}' });
    const [run, ...others] = await started();
    expect([run, ...others]).toMatchObject([
      { delivery: body.delivery_id, webhook: webhook.uid, payload: '{"a":[1]}' },
    ]);
    expect(await log(webhook)).toMatchObject([{ runs: [run?.id], automations: [{ matched: true, run_id: run?.id }] }]);
    await send(webhook, { body: '{"a":[1]}' });
    expect(await started()).toHaveLength(1);
    expect((await log(webhook))[0]).not.toHaveProperty('runs');
  });

  test('is not stored if its run cannot be written, so that its sender can send it again', async () => {
    const webhook = await create();
    await db.query('ALTER TABLE runs RENAME TO other_runs');
    expect((await send(webhook)).status).toBe(500);
    await db.query('ALTER TABLE other_runs RENAME TO runs');
    expect(await labels(webhook)).toEqual([]);
    expect((await send(webhook)).status).toBe(202);
    expect(await labels(webhook)).toEqual(['ACCEPTED']);
  });
});

describe('the log', () => {
  test('has pages, newest first, and can be filtered by label', async () => {
    const webhook = await create();
    for (const body of ['1', '2', '{', '3']) await send(webhook, { body });
    const path = `${base}/${webhook.uid}/deliveries`;
    type Page = { deliveries: WebhookDelivery[]; page_info: { has_next_page: boolean; next_cursor?: string } };
    const first = (await service.request<Page>('GET', `${path}?limit=3`)).body;
    expect(first.deliveries.map(({ label }) => label)).toEqual(['ACCEPTED', 'REJECTED_INVALID_JSON', 'ACCEPTED']);
    const cursor = encodeURIComponent(first.page_info.next_cursor ?? '');
    const second = (await service.request<Page>('GET', `${path}?limit=3&cursor=${cursor}`)).body;
    expect([second.deliveries.length, second.page_info]).toEqual([1, { has_next_page: false }]);
    expect(await log(webhook, '?label=REJECTED_INVALID_JSON')).toHaveLength(1);
    await service.problem(400, 'GET', `${path}?label=DUPLICATE&cursor=${cursor}`);
    await service.problem(404, 'GET', path, { key: service.otherKey });
    const id = first.deliveries[0]?.delivery_id;
    await service.problem(404, 'GET', `${base}/${(await create()).uid}/deliveries/${id}`);
  });

  test('stores no payload of a rejected delivery, so a sender without the secret cannot fill the log', async () => {
    const webhook = await create();
    await send(webhook, { token: 'wrong', body: '{"secret": 1}' });
    const [entry] = await log(webhook);
    const read = await service.request('GET', `${base}/${webhook.uid}/deliveries/${entry?.delivery_id}`);
    expect(read.body).toEqual(entry);
  });
});

describe('a replay', () => {
  test('is a new delivery with the same payload, once for each request', async () => {
    const webhook = await create();
    const { body } = await send(webhook, { body: '{"n": 1e999}' });
    const path = `${base}/${webhook.uid}/deliveries/${body.delivery_id}/replay`;
    for (let round = 0; round < 2; round += 1) {
      const replayed = await service.request<WebhookDelivery>('POST', path);
      expect([replayed.status, replayed.body]).toMatchObject([
        202,
        { label: 'ACCEPTED', replay_of: body.delivery_id, runs: [expect.any(String)] },
      ]);
      const read = await service.request('GET', `${base}/${webhook.uid}/deliveries/${replayed.body.delivery_id}`);
      expect(read.text).toContain('"payload":{"n": 1e999}');
    }
    expect(await started()).toHaveLength(3);
    const headers = { 'idempotency-key': 'replay-1' };
    const [a, b] = [await service.request('POST', path, { headers }), await service.request('POST', path, { headers })];
    expect(a.body).toEqual(b.body);
    expect(await started()).toHaveLength(4);
  });

  test('is refused without a payload, for a disabled webhook, and beyond the budget', async () => {
    const webhook = await create();
    const { body } = await send(webhook);
    await send(webhook);
    const [duplicate] = await log(webhook);
    const replay = (id: string | undefined) => `${base}/${webhook.uid}/deliveries/${id}/replay`;
    await service.problem(409, 'POST', replay(duplicate?.delivery_id));
    await service.problem(404, 'POST', replay('x'));
    await db.query('UPDATE webhooks SET recent = array_fill(clock_timestamp(), ARRAY[60])');
    await service.problem(429, 'POST', replay(body.delivery_id));
    await service.request('POST', `${base}/${webhook.uid}/disable`);
    await service.problem(409, 'POST', replay(body.delivery_id));
  });
});
