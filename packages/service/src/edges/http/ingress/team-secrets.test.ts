/** Tests webhooks with a secret of the team, through the real ingress. */
import { createHmac } from 'node:crypto';
import type { Webhook, WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { silentLog } from '../../../platform/store/database/log.ts';
import { openDatabase } from '../../../platform/store/database/open-database.ts';
import { openWebhookDirectory } from '../../../triggers/webhooks/ingest/directory.ts';
import { buildIngressApp } from '../app.ts';

const service = await openTestService();
const { db } = service.deps;
const { base, create, send, reset } = await testWebhooks(service);
const name = 'ALERTS';
const first = 'first-secret-of-the-alerts';
const put = (value: string, of = name) => service.request('PUT', `/secrets/${of}`, { body: { value, scope: 'team' } });
const remove = () => service.request('DELETE', `/secrets/${name}?scope=team`);

beforeEach(async () => {
  await reset();
  await db.query('DELETE FROM stored_secrets');
  await put(first);
});

/** A second process that gets no notifications. */
const database = closeAtEnd(
  await openDatabase({
    address: { connectionString: service.database.url },
    maxConnections: 4,
    log: silentLog,
  }),
);
const deafDb = { ...database, listen: async () => () => undefined };
const deafWebhooks = closeAtEnd(await openWebhookDirectory(deafDb, service.deps.vault));
const deaf = closeAtEnd(buildIngressApp({ ...service.deps, db: deafDb, webhooks: deafWebhooks }));
const deafOrigin = await deaf.listen({ host: '127.0.0.1', port: 0 });

const read = async ({ uid }: WebhookWithSecret) => (await service.request<Webhook>('GET', `${base}/${uid}`)).body;
let count = 0;
/** Sends a delivery with a token to both processes, and returns their statuses. */
const statusesOf = async ({ url }: WebhookWithSecret, token: string) => {
  const statuses: number[] = [];
  for (const origin of [service.baseUrl, deafOrigin]) {
    count += 1;
    const to = { url: url.replace(service.baseUrl, origin), secret: token };
    statuses.push((await send(to, { body: `${count}` })).status);
  }
  return statuses;
};

describe('a webhook with a secret of the team', () => {
  test('uses the value of the secret, and shows it in no answer', async () => {
    const webhook = await create({ secret_name: name });
    expect(webhook).toMatchObject({ secret_name: name, secret_of_team: true, enabled: true });
    expect(webhook).not.toHaveProperty('secret');
    expect(await statusesOf(webhook, first)).toEqual([202, 202]);
    expect(JSON.stringify(await read(webhook))).not.toContain(first);
    const [row] = await db.query('SELECT sealed_secret FROM webhooks WHERE uid = $1', [webhook.uid]);
    expect(row).toEqual({ sealed_secret: null });
  });

  test('follows a change of the secret at once on every process, even without notices', async () => {
    const webhook = await create({ secret_name: name });
    expect(await statusesOf(webhook, first)).toEqual([202, 202]);
    const second = 'second-secret-of-the-alerts';
    expect((await put(second)).status).toBe(200);
    expect(await statusesOf(webhook, second)).toEqual([202, 202]);
    expect(await statusesOf(webhook, first)).toEqual([401, 401]);
  });

  test('is disabled with a reason when the secret is deleted, and accepts deliveries with another secret', async () => {
    const webhook = await create({ secret_name: name });
    expect(await statusesOf(webhook, first)).toEqual([202, 202]);
    expect((await remove()).status).toBe(200);
    expect(await statusesOf(webhook, first)).toEqual([404, 404]);
    expect(await read(webhook)).toMatchObject({
      enabled: false,
      disabled_reason: `the secret ${name} of the team was deleted`,
    });
    await service.problem(409, 'POST', `${base}/${webhook.uid}/enable`);
    await put(first, 'OTHER');
    const body = { secret_name: 'OTHER', enabled: true };
    const changed = await service.request<Webhook>('PATCH', `${base}/${webhook.uid}`, { body });
    expect(changed.body).toMatchObject({ enabled: true, secret_name: 'OTHER', secret_of_team: true });
    expect(changed.body).not.toHaveProperty('disabled_reason');
    expect(await statusesOf(webhook, first)).toEqual([202, 202]);
  });

  test('verifies signatures with this secret', async () => {
    const webhook = await create({ secret_name: name, auth_mode: 'signature', signature_scheme: 'github' });
    const sign = `sha256=${createHmac('sha256', first).update('{}').digest('hex')}`;
    const headers = { 'x-hub-signature-256': sign };
    expect((await send(webhook, { token: null, headers })).status).toBe(202);
  });

  test('is rotated by changing the secret, not by its own rotation', async () => {
    const webhook = await create({ secret_name: name });
    const { detail } = await service.problem(409, 'POST', `${base}/${webhook.uid}/rotate-secret`, { body: {} });
    expect(detail).toContain(`PUT /secrets/${name}`);
  });

  test('keeps its own secret while the team has no secret with the name that the webhook asks for', async () => {
    const webhook = await create({ secret_name: 'UNKNOWN' });
    expect(webhook).not.toHaveProperty('secret_of_team');
    expect(await statusesOf(webhook, webhook.secret ?? '')).toEqual([202, 202]);
    await put(first, 'UNKNOWN');
    expect(await statusesOf(webhook, first)).toEqual([401, 401]);
  });
});

describe("a value of a team secret that does not match the webhook's scheme", () => {
  test.each([
    ['url_token', 'has a / in it, so that it is not safe'],
    ['token', 'short-one'],
  ])('is refused for %s', async (auth_mode, value) => {
    await put(value);
    const { errors } = await service.problem(400, 'POST', base, { body: { name: 'W', auth_mode, secret_name: name } });
    expect(errors?.[0]?.path).toBe('secret_name');
  });

  test('is refused as the new value of a secret that a webhook uses', async () => {
    const webhook = await create({ secret_name: name, auth_mode: 'url_token' });
    const { errors } = await service.problem(400, 'PUT', `/secrets/${name}`, {
      body: { value: 'not/url/safe/in/any/way', scope: 'team' },
    });
    expect(errors?.[0]).toMatchObject({ path: 'value', message: expect.stringContaining('URL-safe') });
    const url = `${service.baseUrl}/webhooks/w/${webhook.uid}/${first}`;
    expect((await send({ url }, { token: null })).status).toBe(202);
  });

  test('a team secret is refused together with another secret in the request, and so is a secret of another owner', async () => {
    const body = { name: 'W', secret_name: name, secret: 'another-secret-1234' };
    const { errors } = await service.problem(400, 'POST', base, { body });
    expect(errors?.[0]?.path).toBe('secret');
    await db.query(`UPDATE stored_secrets SET owner_uid = (SELECT uid FROM users LIMIT 1)`);
    expect(await create({ secret_name: name })).not.toHaveProperty('secret_of_team');
  });
});
