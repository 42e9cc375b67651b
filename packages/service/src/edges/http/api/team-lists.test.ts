/** Tests the lists of the webhooks, automations and deliveries of all factories of a team. */
import type {
  ListTeamAutomationsResponse,
  ListTeamDeliveriesResponse,
  ListTeamWebhooksResponse,
} from '@runyard/contract/automations/team-lists';
import type { Factory } from '@runyard/contract/factories/factories';
import { expect, test } from 'vitest';
import { at, on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { maxLookedAt } from '../../../triggers/webhooks/log/team-log.ts';

const service = await openTestService();
const { db } = service.deps;
const { factory, base, create: createWebhook, send, log } = await testWebhooks(service);
const { create: automate, fireNow } = testAutomations(service, factory.uid);
const other = await service.ok<Factory>('POST', '/factory', { body: { name: 'Other' } });

const webhooks = async (query = '', key = service.key) =>
  await service.ok<ListTeamWebhooksResponse>('GET', `/webhooks${query}`, { key });
const automations = async (query = '', key = service.key) =>
  await service.ok<ListTeamAutomationsResponse>('GET', `/automations${query}`, { key });
const deliveries = async (query = '', key = service.key) =>
  await service.ok<ListTeamDeliveriesResponse>('GET', `/webhook-deliveries${query}`, { key });

const a = await createWebhook({ name: 'A', event_header: 'x-event' });
const b = await createWebhook({ name: 'B' });
const c = await service.ok<typeof a>('POST', `/factory/${other.uid}/webhooks`, {
  body: { name: 'A', event_header: 'x-event' },
});
const filtered = { ...on(a), filter: { webhook_ids: [a.uid], payload: { go: [true] } } };
const skips = await automate([filtered], { name: 'Skips', overlap: 'skip' });
const timed = await automate([at()], { name: 'Timed' });
const sent = async (webhook: typeof a, event: string, body: string) =>
  (await send(webhook, { body, headers: { 'x-event': event } })).body.delivery_id;
const first = await sent(a, 'push', '{"go":true,"n":1}');
const second = await sent(a, 'push', '{"go":true,"n":2}');
await sent(a, 'push', '{"go":true,"n":2}');
const quiet = await sent(a, 'ping', '{}');
await send(a, { body: '{}', token: 'wrong' });
const elsewhere = await sent(c, 'push', '{}');
await fireNow(timed.uid);

const ids = (page: ListTeamDeliveriesResponse) => page.deliveries.map(({ delivery_id: id }) => id);

test('the list of webhooks is sorted by name and has their factories, the counts of a day and the last delivery', async () => {
  const page = await webhooks();
  const { url: _url, secret: _secret, ...shown } = a;
  const [one, two, three] = page.webhooks.toSorted((x, y) => Number(x.uid === c.uid) - Number(y.uid === c.uid));
  expect(page.webhooks.map(({ name }) => name)).toEqual(['A', 'A', 'B']);
  expect(one).toMatchObject({
    ...shown,
    url: expect.stringContaining(a.uid),
    factory_uid: factory.uid,
    factory_name: 'Test',
    last_24_hours: { accepted: 3, duplicate: 1, rejected: 1 },
    last_delivery: { label: 'REJECTED_AUTH', runs: 0 },
  });
  expect(two).toMatchObject({ uid: b.uid, last_24_hours: { accepted: 0, duplicate: 0, rejected: 0 } });
  expect(two).not.toHaveProperty('last_delivery');
  expect(three).toMatchObject({ uid: c.uid, factory_name: 'Other', last_delivery: { delivery_id: elsewhere } });
  expect(JSON.stringify(page)).not.toContain(a.secret);
  expect((await webhooks(`?factory_uid=${other.uid}`)).webhooks.map(({ uid }) => uid)).toEqual([c.uid]);
});

test('the list of automations is sorted by name and has their factories, the counts of a day and the last fire', async () => {
  const page = await automations();
  expect(page.automations).toMatchObject([
    {
      uid: skips.uid,
      factory_uid: factory.uid,
      factory_name: 'Test',
      last_24_hours: { started: 1, skipped: 1, waiting: 0, failed: 0 },
      last_fire: { outcome: 'skipped', reason: '1 of 1 runs are live', webhook_uid: a.uid, delivery_id: second },
    },
    { uid: timed.uid, last_24_hours: { started: 1 }, last_fire: { outcome: 'started', run_id: expect.any(String) } },
  ]);
  for (const each of page.automations) for (const name of ['prompt', 'config']) expect(each).not.toHaveProperty(name);
  expect((await automations(`?factory_uid=${other.uid}`)).automations).toEqual([]);
});

test('an automation shows what prevents it from firing, also in the list of all factories', async () => {
  const gone = await createWebhook();
  const { uid } = await automate([on(gone)], { name: 'Broken' });
  await service.request('DELETE', `${base}/${gone.uid}`);
  const found = (await automations()).automations.find((each) => each.uid === uid);
  expect(found?.problems).toEqual([`triggers[0]: the webhook ${gone.uid} was deleted`]);
  await service.request('DELETE', `/factory/${factory.uid}/automations/${uid}`);
});

test('the list of deliveries has the matches of each filter and of combined filters, newest first', async () => {
  const all = await deliveries();
  expect(all.deliveries).toHaveLength(6);
  expect(all.deliveries[0]).toMatchObject({
    delivery_id: elsewhere,
    webhook_uid: c.uid,
    webhook_name: 'A',
    factory_uid: other.uid,
    event: 'push',
  });
  const [ofLog] = await log(a, '?limit=1');
  expect(all.deliveries[1]).toEqual({ ...ofLog, webhook_uid: a.uid, webhook_name: 'A', factory_uid: factory.uid });
  expect(ids(await deliveries(`?webhook_uid=${c.uid}`))).toEqual([elsewhere]);
  expect(ids(await deliveries(`?factory_uid=${other.uid}`))).toEqual([elsewhere]);
  expect(ids(await deliveries('?event=ping'))).toEqual([quiet]);
  expect(ids(await deliveries('?started=true'))).toEqual([first]);
  expect(ids(await deliveries(`?started=false&label=ACCEPTED&webhook_uid=${a.uid}`))).toEqual([quiet, second]);
  expect(ids(await deliveries('?label=DUPLICATE'))).toHaveLength(1);
  expect(ids(await deliveries('?label=REJECTED_AUTH&event=push'))).toEqual([]);
  expect(ids(await deliveries(`?webhook_uid=${b.uid}`))).toEqual([]);
  const time = all.deliveries.find(({ delivery_id: id }) => id === quiet)?.received_at ?? '';
  expect(ids(await deliveries(`?received_after=${time}&label=ACCEPTED`))).toEqual([elsewhere, quiet]);
  expect(ids(await deliveries(`?received_before=${time}&label=ACCEPTED`))).toEqual([second, first]);
});

test.each([
  ['/webhooks', '', 'webhooks'],
  ['/automations', '', 'automations'],
  ['/webhook-deliveries', '', 'deliveries'],
  ['/webhook-deliveries', `&webhook_uid=${a.uid}`, 'deliveries'],
  ['/webhook-deliveries', '&event=push', 'deliveries'],
  ['/webhook-deliveries', '&label=DUPLICATE', 'deliveries'],
])('pages of %s%s show each entry once, and no other list accepts their cursors', async (path, query, member) => {
  type Page = Record<string, unknown[]> & { page_info: { next_cursor?: string } };
  const whole = (await service.ok<Page>('GET', `${path}?limit=100${query}`))[member];
  const found: unknown[] = [];
  let cursor: string | undefined;
  do {
    const at = cursor === undefined ? '' : `&cursor=${cursor}`;
    const body = await service.ok<Page>('GET', `${path}?limit=1${query}${at}`);
    found.push(...(body[member] ?? []));
    cursor = body.page_info.next_cursor;
    if (cursor !== undefined) await service.problem(400, 'GET', `${path}?factory_uid=x&cursor=${cursor}`);
  } while (cursor !== undefined);
  expect(found).toEqual(whole);
  await service.problem(400, 'GET', `${path}?limit=101`);
});

test('a filter with few matches has short pages and misses no match, and shows no delivery of another team', async () => {
  await db.query(
    `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, xact)
     SELECT new_uuid_v7(), uid, team_id, 'ACCEPTED', 1, '0' FROM webhooks, generate_series(1, $2) WHERE uid = $1`,
    [b.uid, maxLookedAt],
  );
  const page = await deliveries('?started=true');
  expect(page).toMatchObject({ deliveries: [], page_info: { has_next_page: true } });
  const next = await deliveries(`?started=true&cursor=${page.page_info.next_cursor}`);
  expect([ids(next), next.page_info]).toEqual([[first], { has_next_page: false }]);
  const ofThisWebhook = `?started=true&webhook_uid=${b.uid}`;
  expect((await deliveries(ofThisWebhook)).page_info.has_next_page).toBe(true);
  expect(await deliveries(ofThisWebhook, service.otherKey)).toEqual({
    deliveries: [],
    page_info: { has_next_page: false },
  });
  await db.query('DELETE FROM webhook_deliveries WHERE webhook_uid = $1', [b.uid]);
});

test('viewers and agent keys read the lists, and another team cannot', async () => {
  const read = async (key: string) => [
    (await webhooks('', key)).webhooks.length,
    (await automations('', key)).automations.length,
    (await deliveries('', key)).deliveries.length,
  ];
  expect(await read(await service.newKey({ role: 'viewer' }))).toEqual([3, 2, 6]);
  expect(await read(await service.newKey({ kind: 'agent' }))).toEqual([3, 2, 6]);
  expect(await read(service.otherKey)).toEqual([0, 0, 0]);
  for (const query of [`?webhook_uid=${a.uid}`, `?factory_uid=${factory.uid}`, '?event=push', '?label=DUPLICATE'])
    expect((await deliveries(query, service.otherKey)).deliveries).toEqual([]);
  for (const path of ['/webhooks', '/automations', '/webhook-deliveries'])
    await service.problem(401, 'GET', path, { key: null });
});
