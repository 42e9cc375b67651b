/** Tests with a real database how deliveries are written together. */
import { randomUUIDv7 } from 'node:crypto';
import type { Automation } from '@runyard/contract/automations/automations';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { type KnownWebhook, openWebhookDirectory } from '../../webhooks/ingest/directory.ts';
import { identify } from '../../webhooks/ingest/read-request.ts';
import { makeDeliveryWriter, makeGate } from './delivery-queue.ts';

let fails: (body: string) => boolean = () => false;
let wait: Promise<void> | undefined;
const batches: number[] = [];
const service = await openTestService({
  startDeliveries: async () => async (deliveries) => {
    batches.push(deliveries.length);
    await wait;
    if (deliveries.some(({ body }) => fails(String(body)))) throw new Error('a delivery that cannot be started');
    return deliveries.map(() => true);
  },
});
const { db } = service.deps;
const { factory, create, send, labels, reset } = await testWebhooks(service);

beforeEach(async () => {
  await reset();
  await db.query('DELETE FROM automations');
  fails = () => false;
  wait = undefined;
  batches.length = 0;
});

/** Creates a webhook and an automation that reads its deliveries. */
const createFeeding = async () => {
  const webhook = await create();
  const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [webhook.uid] } }];
  const body = { name: webhook.uid, prompt: 'Look.', triggers };
  await service.request<Automation>('POST', `/factory/${factory.uid}/automations`, { body });
  return webhook;
};

describe('deliveries that arrive at the same time', () => {
  test('need fewer transactions than there are deliveries', async () => {
    const webhook = await createFeeding();
    const sent = await Promise.all(Array.from({ length: 40 }, (_, n) => send(webhook, { body: `${n}` })));
    expect(new Set(sent.map(({ status }) => status))).toEqual(new Set([202]));
    expect(batches.reduce((sum, size) => sum + size, 0)).toBe(40);
    expect(batches.length).toBeLessThan(30);
  });

  test('are written in one transaction if they arrive in one turn of the event loop', async () => {
    const { uid } = await create();
    const known = await openWebhookDirectory(db, service.deps.vault).then(async (directory) => {
      const webhook = await directory.find(uid);
      directory.close();
      return webhook as KnownWebhook;
    });
    known.hints.feedsAutomations = true;
    let transactions = 0;
    const counting: typeof db = {
      ...db,
      transaction: (work) => {
        transactions += 1;
        return db.transaction(work);
      },
    };
    const gate = makeGate({ concurrent: 2, waiting: 10 });
    const writer = makeDeliveryWriter(counting, service.deps.startDeliveries, { gate, startingGate: gate });
    const write = (text: string) => {
      const body = Buffer.from(text);
      const identity = identify(known, {}, body);
      return writer({ webhook: known, id: randomUUIDv7(), body, payload: text, identity, event: null, headers: {} });
    };
    const second = new Promise((resolve) => setImmediate(() => resolve(write('"2"'))));
    expect([await write('"1"'), await second]).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    expect(transactions).toBe(1);
  });

  test('succeed even if another delivery of the batch fails', async () => {
    const webhook = await createFeeding();
    fails = (body) => body === '"bad"';
    const bodies = Array.from({ length: 20 }, (_, n) => (n === 7 ? '"bad"' : `${n}`));
    const statuses = await Promise.all(bodies.map(async (body) => (await send(webhook, { body })).status));
    expect(statuses).toEqual(bodies.map((body) => (body === '"bad"' ? 500 : 202)));
    expect(await labels(webhook)).toHaveLength(19);
    fails = () => false;
    expect((await send(webhook, { body: '"bad"' })).status).toBe(202);
    expect((await labels(webhook))[0]).toBe('ACCEPTED');
  });

  test('do not wait for deliveries that start runs, if no automation reads their webhook', async () => {
    const [slow, quick] = [await createFeeding(), await create()];
    let release: () => void = () => undefined;
    wait = new Promise((resolve) => {
      release = resolve;
    });
    const waiting = Array.from({ length: 10 }, (_, n) => send(slow, { body: `${n}` }));
    await expect.poll(() => batches.length).toBeGreaterThan(0);
    expect((await send(quick)).status).toBe(202);
    release();
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([202]));
  });
});

test('a new automation gets the next delivery of an existing webhook, and deleting the automation delays no delivery', async () => {
  const webhook = await create();
  expect((await send(webhook, { body: '1' })).status).toBe(202);
  expect(batches).toEqual([]);
  const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: { in: [webhook.uid] } } }];
  const body = { name: 'late', prompt: 'Look.', triggers };
  const createdAutomation = await service.request<Automation>('POST', `/factory/${factory.uid}/automations`, { body });
  expect((await send(webhook, { body: '2' })).status).toBe(202);
  expect(batches).toEqual([1]);
  // A duplicate starts nothing, so it is not in a batch of deliveries that may start runs.
  expect((await send(webhook, { body: '2' })).status).toBe(202);
  expect(batches).toEqual([1]);
  await service.request('DELETE', `/factory/${factory.uid}/automations/${createdAutomation.body.uid}`);
  expect((await send(webhook, { body: '3' })).status).toBe(202);
  expect(await labels(webhook)).toEqual(['ACCEPTED', 'DUPLICATE', 'ACCEPTED', 'ACCEPTED']);
});

test('the webhook directory keeps the hint that automations read a webhook after a new read, and forgets the hint after a change', async () => {
  const { uid } = await create();
  let nowMs = 0;
  const directory = await openWebhookDirectory(db, service.deps.vault, () => nowMs);
  const first = await directory.find(uid);
  if (first) first.hints.feedsAutomations = true;
  nowMs = 6_000;
  const second = await directory.find(uid);
  expect([second === first, second?.hints.feedsAutomations]).toEqual([false, true]);
  directory.forget(uid);
  expect((await directory.find(uid))?.hints.feedsAutomations).toBe(false);
  directory.close();
});

test('a gate runs a limited number of calls at once, queues further calls in their order, and refuses calls if the queue is full', async () => {
  const gate = makeGate({ concurrent: 2, waiting: 2 });
  const started: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) =>
    gate(async () => {
      started.push(number);
      await new Promise<void>((resolve) => ends.push(resolve));
      return number;
    });
  const results = [1, 2, 3, 4, 5].map(work);
  expect(await results[4]).toBe('busy');
  expect(started).toEqual([1, 2]);
  ends.shift()?.();
  expect(await results[0]).toBe(1);
  await expect.poll(() => started).toEqual([1, 2, 3]);
  while (started.length < 4 || ends.length > 0) {
    ends.shift()?.();
    await Promise.resolve();
  }
  expect(await Promise.all(results)).toEqual([1, 2, 3, 4, 'busy']);
});

test('a gate runs the next call after a call that failed', async () => {
  const gate = makeGate({ concurrent: 1, waiting: 1 });
  const failed = gate(async () => Promise.reject(new Error('broken')));
  const next = gate(async () => 'done');
  await expect(failed).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
