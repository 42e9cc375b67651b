/** Tests several service processes with the same database. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { silentLog } from '../../../platform/store/database/log.ts';
import { openDatabase } from '../../../platform/store/database/open-database.ts';
import { openWebhookDirectory } from '../../../triggers/webhooks/ingest/directory.ts';
import { buildIngressApp } from '../app.ts';
import type { ServiceDeps } from '../server/deps.ts';

const service = await openTestService();
const { base, create, send, labels, reset } = await testWebhooks(service);
beforeEach(reset);

/**
 * Opens an ingress with its own database connections and its own webhook directory. With `isDeaf`, the ingress gets no notifications of
 * changes.
 */
async function openProcess(isDeaf: boolean) {
  const database = await openDatabase({
    address: { connectionString: service.database.url },
    maxConnections: 8,
    log: silentLog,
  });
  const db = isDeaf ? { ...database, listen: async () => () => undefined } : database;
  const webhooks = await openWebhookDirectory(db, service.deps.vault);
  const deps: ServiceDeps = { ...service.deps, db, webhooks };
  const app = buildIngressApp(deps);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  afterAll(async () => {
    await app.close();
    webhooks.close();
    await database.close();
  });
  return {
    at: (webhook: WebhookWithSecret) => ({ ...webhook, url: webhook.url.replace(service.baseUrl, origin) }),
    origin,
  };
}

const [second, third, deaf] = await Promise.all([openProcess(false), openProcess(false), openProcess(true)]);
const everywhere = (webhook: WebhookWithSecret) => [webhook, second.at(webhook), third.at(webhook)];
const sendTo = async (webhook: WebhookWithSecret, index: number, body: string) => {
  const place = everywhere(webhook)[index % 3];
  return place ? (await send(place, { body })).status : 0;
};

describe('three processes', () => {
  test('accept one of 50 equal concurrent deliveries, and log the others as duplicates', async () => {
    const webhook = await create();
    const statuses = await Promise.all(Array.from({ length: 50 }, (_, index) => sendTo(webhook, index, '{"same": 1}')));
    expect(new Set(statuses)).toEqual(new Set([202]));
    const all = await labels(webhook);
    expect([all.length, all.filter((label) => label === 'ACCEPTED').length]).toEqual([50, 1]);
    expect(all.filter((label) => label === 'DUPLICATE')).toHaveLength(49);
  });

  test('share the budget of a webhook', async () => {
    const webhook = await create();
    const more = maxWebhookDeliveriesPerMinute + 15;
    const statuses = await Promise.all(Array.from({ length: more }, (_, index) => sendTo(webhook, index, `${index}`)));
    expect(statuses.filter((status) => status === 202)).toHaveLength(maxWebhookDeliveriesPerMinute);
    expect(statuses.filter((status) => status === 429)).toHaveLength(15);
  });
});

describe('a process that gets no notification of a change', () => {
  test('accepts nothing after a disable, a rotation or a delete, and uses the new secret at once', async () => {
    const webhook = await create();
    const path = `${base}/${webhook.uid}`;
    const known = async () => expect((await send(deaf.at(webhook), { body: `${Math.random()}` })).status).toBe(202);
    await known();
    await service.request('POST', `${path}/disable`);
    expect((await send(deaf.at(webhook))).status).toBe(404);
    await service.request('POST', `${path}/enable`);
    await known();
    const rotated = (await service.request<WebhookWithSecret>('POST', `${path}/rotate-secret`)).body;
    expect((await send(deaf.at(rotated), { body: '1' })).status).toBe(202);
    expect((await send(deaf.at(webhook), { body: '2' })).status).toBe(401);
    await service.request('DELETE', path);
    expect((await send(deaf.at(rotated), { body: '3' })).status).toBe(404);
    expect((await send(deaf.at(rotated), { body: '4', token: 'wrong' })).status).toBe(404);
  });
});

test('the port for senders has no API', async () => {
  const answer = await service.request('GET', `${second.origin}/api/v1/agent/runs`);
  expect(answer.status).toBe(404);
  expect((await service.request('GET', `${second.origin}/`)).status).toBe(404);
});
