/** Tests the stream of the deliveries of a team. */
import type { TeamWebhookDelivery } from '@runyard/contract/automations/team-lists';
import { expect, test, vi } from 'vitest';
import { on, testAutomations } from '../../../../test/automations.ts';
import { openTestService } from '../../../../test/service.ts';
import { followStream, type StreamReader } from '../../../../test/stream.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { startWaiting } from '../../../triggers/starts/settle.ts';

const service = await openTestService();
const { db } = service.deps;
const { factory, create: createWebhook, send } = await testWebhooks(service);
const { create: automate } = testAutomations(service, factory.uid);
const path = '/webhook-deliveries/events';

const deliveriesOf = ({ received }: StreamReader): TeamWebhookDelivery[] =>
  received.flatMap(({ event }) => (event.type === 'delivery' ? [event.delivery] : []));
const follow = async (lastId?: string, key?: string) => {
  const reader = await followStream(service, path, lastId, key);
  await vi.waitFor(() => expect(reader.lastId()).not.toBe(''), 60_000);
  return reader;
};
const until = (reader: StreamReader, id: string) =>
  vi.waitFor(() => expect(deliveriesOf(reader).map((each) => each.delivery_id)).toContain(id), 60_000);

test('the stream of deliveries sends each delivery as the list shows it, and no delivery of other teams', async () => {
  const [reader, others] = [await follow(), await follow(undefined, service.otherKey)];
  const webhook = await createWebhook();
  await automate([{ ...on(webhook), filter: { webhook_ids: [webhook.uid], payload: { a: ['b'] } } }]);
  await send(webhook, { token: 'wrong' });
  const { delivery_id } = (await send(webhook)).body;
  await until(reader, delivery_id);
  const listed = await service.request<{ deliveries: unknown[] }>('GET', '/webhook-deliveries');
  expect(deliveriesOf(reader).toReversed()).toEqual(listed.body.deliveries);
  expect(deliveriesOf(reader).map(({ label }) => label)).toEqual(['REJECTED_AUTH', 'ACCEPTED']);
  expect(deliveriesOf(others)).toEqual([]);
  reader.close();
  others.close();
});

test('the stream of deliveries sends a waiting delivery first as waiting, and a second time when its outcome is known', async () => {
  const reader = await follow();
  const webhook = await createWebhook();
  await automate([on(webhook)], { overlap: 'queue' });
  await send(webhook, { body: '1' });
  const { delivery_id } = (await send(webhook, { body: '2' })).body;
  await until(reader, delivery_id);
  await db.query(`UPDATE runs SET state = 'SUCCEEDED' WHERE source = 'WEBHOOK'`);
  await startWaiting(service.deps);
  const outcomes = () =>
    deliveriesOf(reader).flatMap(({ delivery_id: id, automations, runs = [] }) =>
      id === delivery_id ? [[automations?.[0]?.reason, runs.length]] : [],
    );
  await vi.waitFor(
    () =>
      expect(outcomes()).toEqual([
        ['waits: 1 of 1 runs are live', 0],
        [undefined, 1],
      ]),
    30_000,
  );
  reader.close();
});

test('the stream of deliveries resumes after every id without loss, also after deliveries that committed later', async () => {
  const webhook = await createWebhook();
  const reader = await follow();
  const beginning = reader.lastId();
  for (const body of ['1', '2', '3']) await send(webhook, { body });
  // The id of this delivery is older than the ids of the others, as if its transaction had taken longer.
  await db.query(
    `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes)
     SELECT '01900000-0000-7000-8000-000000000001', uid, team_id, 'ACCEPTED', 1 FROM webhooks WHERE uid = $1`,
    [webhook.uid],
  );
  await until(reader, '01900000-0000-7000-8000-000000000001');
  reader.close();
  expect(reader.received).toHaveLength(4);
  for (const [index, id] of [beginning, ...reader.received.map((each) => each.id)].entries()) {
    const rest = await follow(id);
    await vi.waitFor(() => expect(rest.received).toEqual(reader.received.slice(index)), 60_000);
    rest.close();
  }
});

test('the stream of deliveries answers 400 for ids of another kind, 410 for ids of another epoch, and 401 without a key', async () => {
  const [epoch, xact] = (await follow()).lastId().split('-');
  const refused = (status: number, id: string) =>
    service.problem(status, 'GET', path, { headers: { 'last-event-id': id } });
  await refused(400, 'x');
  await refused(400, `${epoch}-999999999999`);
  await refused(410, `0123456789abcdef-${xact}`);
  await service.problem(401, 'GET', path, { key: null });
});
