import { randomUUIDv7 } from 'node:crypto';
import { maxSubscriptions } from '@runyard/contract/limits';
import {
  type EventDelivery,
  EventSubscription,
  EventSubscriptionWithSecret,
  ListEventSubscriptionsResponse,
} from '@runyard/contract/team/event-subscriptions';
import { beforeEach, describe, expect, test } from 'vitest';
import { base, testEventSubscriptions, url } from '../../../../test/event-subscriptions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const member = await service.newKey({ role: 'member' });
const agent = await service.newKey({ kind: 'agent' });
beforeEach(() => service.deps.db.query('DELETE FROM event_subscriptions'));

const { create, read } = testEventSubscriptions(service);

describe('POST /event-subscriptions', () => {
  test('answers 201 with the secret, which is stored encrypted and never shown again', async () => {
    const answer = await service.request<EventSubscriptionWithSecret>('POST', base, {
      body: { name: 'CI', url, events: ['run.ended', 'run.created', 'run.ended'], filter: { metadata: { a: 'b' } } },
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const { secret, ...subscription } = EventSubscriptionWithSecret.parse(answer.body);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(subscription).toMatchObject({
      name: 'CI',
      url,
      events: ['run.ended', 'run.created'],
      filter: { metadata: { a: 'b' } },
      enabled: true,
    });
    expect(await service.ok('GET', `${base}/${subscription.id}`)).toEqual(subscription);
    expect(await service.ok('GET', base)).toEqual({ subscriptions: [subscription] });
    const [dump] = await service.deps.db.query<{ dump: string }>(
      `SELECT (SELECT json_agg(s)::text FROM event_subscriptions s) || coalesce((SELECT json_agg(k)::text FROM idempotency_keys k), '') AS dump`,
    );
    const bytes = Buffer.from(secret.slice(6), 'base64');
    for (const form of [secret, bytes.toString('hex'), secret.slice(6)]) expect(dump?.dump).not.toContain(form);
  });

  test('creates one subscription for two requests with the same Idempotency-Key, and returns the secret to both', async () => {
    const ask = (name: string) =>
      service.request<EventSubscriptionWithSecret>('POST', base, {
        body: { url, name, events: ['run.created'] },
        headers: { 'idempotency-key': 'subscription-1' },
      });
    const answers = await Promise.all([ask('a'), ask('a'), ask('a')]);
    for (const { body } of answers) expect(body).toEqual(answers[0]?.body);
    expect(answers[0]?.body.secret).toMatch(/^whsec_/);
    expect(ListEventSubscriptionsResponse.parse(await service.ok('GET', base)).subscriptions).toHaveLength(1);
    const [kept] = await service.deps.db.query<{ text: string }>('SELECT response::text AS text FROM idempotency_keys');
    expect(kept?.text).not.toContain('whsec_');
    await service.problem(409, 'POST', base, {
      body: { url, name: 'b', events: ['run.created'] },
      headers: { 'idempotency-key': 'subscription-1' },
    });
  });

  test.each([
    ['without a URL', { url: undefined }],
    ['with a URL of http', { url: 'http://example.com/' }],
    ['with an address that is not public', { url: 'https://169.254.169.254/' }],
    ['with a user in its URL', { url: 'https://a:b@example.com/' }],
    ['with the port of mail', { url: 'https://example.com:25/' }],
    ['without events', { events: [] }],
    ['with an unknown event', { events: ['run.deleted'] }],
    ['with an unknown source in its filter', { filter: { source: 'NOWHERE' } }],
    ['with a NUL in its name', { name: 'a\u0000' }],
  ])('answers 400 for one %s', async (_, more) => {
    await service.problem(400, 'POST', base, { body: { url, events: ['run.created'], ...more } });
  });

  test.each([
    ['http://127.0.0.1:4190/', '127.0.0.1 is not public', '127.0.0.0/8'],
    ['https://10.1.2.3/', '10.1.2.3 is not public', '10.1.2.3/32'],
    ['https://[::1]/', '::1 is not public', '::1/128'],
    ['http://localhost:4190/', 'localhost is not public', '127.0.0.0/8,::1/128'],
  ])('says how to allow %s', async (address, why, networks) => {
    const { errors } = await service.problem(400, 'POST', base, { body: { url: address, events: ['run.created'] } });
    const message = `${why}: start Runyard with RUNYARD_ALLOW_PRIVATE_NETWORKS=${networks} to allow it`;
    expect(errors).toMatchObject([{ path: 'url', message }]);
  });

  test('answers 409 beyond the limit, also concurrently', async () => {
    const answers = await Promise.all(
      Array.from({ length: maxSubscriptions + 3 }, () =>
        service.request('POST', base, { body: { url, events: ['run.created'] } }),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(maxSubscriptions);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(3);
  });
});

describe('the subscriptions of a team', () => {
  test('answer 403 to members and agents on every endpoint', async () => {
    const { id } = await create();
    const delivery = await service.ok<EventDelivery>('POST', `${base}/${id}/test`);
    const body = { url, events: ['run.created'] };
    for (const key of [member, agent]) {
      await service.problem(403, 'GET', base, { key });
      await service.problem(403, 'POST', base, { key, body });
      await service.problem(403, 'GET', `${base}/${id}`, { key });
      await service.problem(403, 'PATCH', `${base}/${id}`, { key, body: { enabled: false } });
      await service.problem(403, 'DELETE', `${base}/${id}`, { key });
      await service.problem(403, 'POST', `${base}/${id}/rotate-secret`, { key });
      await service.problem(403, 'POST', `${base}/${id}/test`, { key });
      await service.problem(403, 'GET', `${base}/${id}/deliveries`, { key });
      await service.problem(403, 'POST', `${base}/${id}/deliveries/${delivery.id}/redeliver`, { key });
    }
    expect(await read(id)).toMatchObject({ enabled: true });
  });

  test('are hidden from another team', async () => {
    const { id } = await create();
    expect(await service.ok('GET', base, { key: service.otherKey })).toEqual({ subscriptions: [] });
    await service.problem(404, 'PATCH', `${base}/${id}`, { key: service.otherKey, body: { enabled: false } });
    await service.problem(404, 'DELETE', `${base}/${id}`, { key: service.otherKey });
    expect(await read(id)).toMatchObject({ enabled: true });
  });
});

describe('PATCH /event-subscriptions/{id}', () => {
  test('changes only the named members', async () => {
    const { id, secret: _, ...made } = await create({ name: 'a', filter: { source: 'CLI', name: 'n' } });
    const change = async (body: object) =>
      EventSubscription.parse(await service.ok('PATCH', `${base}/${id}`, { body }));
    expect(await change({ events: ['run.ended'] })).toMatchObject({
      ...made,
      events: ['run.ended'],
      updated_at: expect.any(String),
    });
    expect(await change({ name: null, filter: null })).not.toHaveProperty('filter');
    expect(await read(id)).not.toHaveProperty('name');
    expect(await change({ url: 'https://example.org/' })).toMatchObject({ url: 'https://example.org/' });
    expect(await change({ enabled: false })).toMatchObject({ enabled: false });
  });

  test('shows why the subscription was disabled, until it is enabled', async () => {
    const { id } = await create();
    await service.deps.db.query(
      `UPDATE event_subscriptions SET enabled = false, disabled_reason = 'It failed.', disabled_at = now(), failing_since = now()`,
    );
    expect(await read(id)).toMatchObject({ disabled_reason: 'It failed.', disabled_at: expect.any(String) });
    await service.request('PATCH', `${base}/${id}`, { body: { name: 'b' } });
    expect(await read(id)).toMatchObject({ enabled: false, disabled_reason: 'It failed.' });
    await service.request('PATCH', `${base}/${id}`, { body: { enabled: true } });
    const enabled = await read(id);
    for (const member of ['disabled_reason', 'disabled_at', 'failing_since'])
      expect(enabled).not.toHaveProperty(member);
  });

  test.each([{ url: 'https://10.0.0.1/' }, { events: [] }, { enabled: 'yes' }])('answers 400 for %o', async (body) => {
    const { id } = await create();
    await service.problem(400, 'PATCH', `${base}/${id}`, { body });
  });

  test('answers 404 for an unknown id', async () => {
    await service.problem(404, 'PATCH', `${base}/${randomUUIDv7()}`, { body: { enabled: true } });
    await service.problem(404, 'PATCH', `${base}/x`, { body: { enabled: true } });
  });
});

test('DELETE /event-subscriptions/{id} removes the subscription with its deliveries', async () => {
  const { id } = await create();
  await service.newRun();
  expect(await service.ok('DELETE', `${base}/${id}`)).toEqual({ success: true });
  await service.problem(404, 'GET', `${base}/${id}`);
  await service.problem(404, 'DELETE', `${base}/${id}`);
  expect(await service.deps.db.query('SELECT FROM event_deliveries WHERE subscription_id = $1', [id])).toEqual([]);
});

test('POST /event-subscriptions/{id}/rotate-secret answers with a new secret', async () => {
  const { id, secret } = await create();
  const answer = await service.request('POST', `${base}/${id}/rotate-secret`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  const rotated = EventSubscriptionWithSecret.parse(answer.body);
  expect(rotated.secret).not.toBe(secret);
  expect(rotated.id).toBe(id);
  await service.problem(404, 'POST', `${base}/${randomUUIDv7()}/rotate-secret`);
});
