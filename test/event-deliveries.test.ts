/**
 * Tests event deliveries with real service processes on one database. In the first test, a process is killed while it sends an event. In
 * the second test, two processes share the work.
 */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type {
  EventSubscriptionWithSecret,
  ListEventDeliveriesResponse,
} from '@runyard/contract/team/event-subscriptions';
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../packages/service/test/database.ts';
import { type FakeWebhookReceiver, startFakeWebhookReceiver } from './fakes/webhook-receiver.ts';
import { closeAtEnd } from './support/close-at-end.ts';
import { eventually, killHard, type System, startSystem } from './support/system.ts';

let receiver: FakeWebhookReceiver;
const secretsKey = randomBytes(32).toString('base64');

/** Starts a service. With `blobsOf`, the service uses the blobs in this data folder of another service. */
const start = async (blobsOf?: string): Promise<System> =>
  await startSystem({
    workers: [],
    databaseUrl: database.url,
    env: {
      RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8',
      RUNYARD_SECRETS_KEY: secretsKey,
      ...(blobsOf === undefined ? {} : { RUNYARD_BLOBS: path.join(blobsOf, 'blobs') }),
    },
  });

const database = closeAtEnd(await createTestDatabase());
const system = await start();
afterAll(async () => {
  await system?.stop();
});
beforeEach(async () => {
  receiver = closeAtEnd(await startFakeWebhookReceiver());
});

/** Until the test ends. */
const subscribe = async (): Promise<string> => {
  const body = { url: receiver.url, events: ['run.created', 'run.ended'] };
  const created = await system.call<EventSubscriptionWithSecret>('POST', '/event-subscriptions', body, 201);
  onTestFinished(() => system.call('DELETE', `/event-subscriptions/${created.id}`));
  receiver.secrets.push(created.secret);
  return created.id;
};

const deliveriesOf = async (system: System, id: string, limit = 100) =>
  (await system.call<ListEventDeliveriesResponse>('GET', `/event-subscriptions/${id}/deliveries?limit=${limit}`))
    .deliveries;

test('a restarted service sends an event again with the same webhook-id if it was killed before it recorded the delivery', async () => {
  const id = await subscribe();
  receiver.behave('hang');
  const runId = await system.createRun('Do it.');
  await eventually('the first attempt', async () => receiver.waiting === 1);
  await killHard(system.service());
  receiver.behave({ status: 204 });
  await system.startService();
  // Make the delivery due now. Otherwise it would be due only when the lease of the killed process ends.
  await database.db.query('UPDATE event_deliveries SET next_attempt_at = now()');
  const [delivery] = await eventually('the second attempt', async () => {
    const deliveries = await deliveriesOf(system, id);
    return deliveries[0]?.status === 'delivered' && deliveries;
  });
  expect(delivery).toMatchObject({ run_id: runId, attempts: [{ number: 2, status: 204 }] });
  const created = receiver.received.filter(({ body }) => body.includes(runId));
  expect(created.map((each) => [each.id, each.verified])).toEqual([
    [delivery?.id, true],
    [delivery?.id, true],
  ]);
  expect(created[0]?.body).toBe(created[1]?.body);
});

test('two processes together deliver every event once, even if one process creates a run and the other one cancels it', async () => {
  const [one, two] = [system, await start(system.dataDir)];
  onTestFinished(() => two.stop());
  const id = await subscribe();
  const runIds = await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? one : two).createRun('Do it.')));
  await Promise.all(runIds.map((runId, n) => (n % 2 ? two : one).call('POST', `/agent/runs/${runId}/cancel`)));
  await eventually('all deliveries', async () => {
    const deliveries = await deliveriesOf(two, id);
    return deliveries.length === 40 && deliveries.every(({ status }) => status === 'delivered');
  });
  expect(new Set(receiver.received.map((each) => each.id)).size).toBe(40);
  expect(receiver.received).toHaveLength(40);
  expect(receiver.received.every(({ verified }) => verified)).toBe(true);
  const told = receiver.received.map(({ body }) => JSON.parse(body)).map(({ type, data }) => `${type} ${data.run_id}`);
  expect(told.sort()).toEqual(runIds.flatMap((runId) => [`run.created ${runId}`, `run.ended ${runId}`]).sort());
});
