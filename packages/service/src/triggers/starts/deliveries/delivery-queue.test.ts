/** Tests how deliveries are written together. */
import { randomUUIDv7 } from 'node:crypto';
import type { Automation } from '@runyard/contract/automations/automations';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import type { KnownWebhook } from '../../webhooks/ingest/directory.ts';
import { identify } from '../../webhooks/ingest/read-request.ts';
import type { Written } from '../../webhooks/ingest/take-deliveries.ts';
import { makeDeliveryWriter, makeGate } from './delivery-queue.ts';

const service = await openTestService();
const { db, webhooks } = service.deps;
const { factory, create, send, labels, reset } = await testWebhooks(service);
beforeEach(async () => {
  await reset();
  await db.query('DELETE FROM automations');
});

/** Returns a writer whose batches are written by `write`. `batches`: the bodies of each batch. */
function makeWriter(write: (bodies: readonly string[]) => Promise<unknown> = async () => undefined) {
  const batches: string[][] = [];
  const writer = makeDeliveryWriter(
    async (deliveries) => {
      const bodies = deliveries.map(({ body }) => String(body));
      batches.push(bodies);
      await write(bodies);
      return deliveries.map((): Written => ({ kind: 'accepted' }));
    },
    makeGate({ concurrent: 3, waiting: 10 }),
  );
  const deliver = (webhook: KnownWebhook, text: string) => {
    const body = Buffer.from(text);
    const identity = identify(webhook, {}, body);
    return writer({ webhook, id: randomUUIDv7(), body, payload: text, identity, event: null, headers: {} });
  };
  return { batches, deliver };
}

const known = async (): Promise<KnownWebhook> => {
  const webhook = await webhooks.find((await create()).uid);
  if (!webhook) throw new Error('the webhook is not known');
  return webhook;
};

describe('deliveries that arrive at the same time', () => {
  test('need fewer transactions than there are deliveries', async () => {
    const webhook = await known();
    const { batches, deliver } = makeWriter(() => db.query('SELECT 1'));
    const sent = await Promise.all(Array.from({ length: 40 }, (_, n) => deliver(webhook, `${n}`)));
    expect(sent).toEqual(sent.map(() => ({ kind: 'accepted' })));
    expect(batches.flat()).toHaveLength(40);
    expect(batches.length).toBeLessThan(30);
  });

  test('are written in one transaction if they arrive in one turn of the event loop', async () => {
    const webhook = await known();
    const { batches, deliver } = makeWriter();
    const second = new Promise((resolve) => setImmediate(() => resolve(deliver(webhook, '"2"'))));
    expect([await deliver(webhook, '"1"'), await second]).toEqual([{ kind: 'accepted' }, { kind: 'accepted' }]);
    expect(batches).toEqual([['"1"', '"2"']]);
  });

  test('succeed even if another delivery of the batch fails', async () => {
    const webhook = await known();
    const { batches, deliver } = makeWriter(async (bodies) => {
      if (bodies.includes('7')) throw new Error('a delivery that cannot be written');
    });
    const sent = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => deliver(webhook, `${n}`)));
    expect(sent.map(({ status }) => status)).toEqual(sent.map((_, n) => (n === 7 ? 'rejected' : 'fulfilled')));
    expect(batches[0]).toHaveLength(20);
  });

  test('do not wait for deliveries of another webhook that are written slowly', async () => {
    const [slow, quick] = [await known(), await known()];
    const { promise, resolve: release } = Promise.withResolvers<void>();
    const { batches, deliver } = makeWriter((bodies) => (bodies.includes('quick') ? Promise.resolve() : promise));
    const first = deliver(slow, 'first');
    await expect.poll(() => batches).toEqual([['first']]);
    const later = Array.from({ length: 10 }, (_, n) => deliver(slow, `${n}`));
    expect(await deliver(quick, 'quick')).toEqual({ kind: 'accepted' });
    expect(batches).toEqual([['first'], ['quick']]);
    release();
    await Promise.all([first, ...later]);
    expect(batches.slice(2).flat()).toEqual(Array.from({ length: 10 }, (_, n) => `${n}`));
  });

  test('wait in one queue for each team, and are refused above 512', async () => {
    const [webhook, other] = [await known(), { ...(await known()), teamId: randomUUIDv7() }];
    const { promise, resolve: release } = Promise.withResolvers<void>();
    const { batches, deliver } = makeWriter((bodies) => (bodies.includes('other') ? Promise.resolve() : promise));
    const first = deliver(webhook, 'first');
    await expect.poll(() => batches.length).toBe(1);
    const waiting = Array.from({ length: 512 }, (_, n) => deliver(webhook, `${n}`));
    expect(await deliver(webhook, 'too many')).toBe('busy');
    expect(await deliver(other, 'other')).toEqual({ kind: 'accepted' });
    release();
    await Promise.all([first, ...waiting]);
    expect(Math.max(...batches.map(({ length }) => length))).toBe(64);
  });
});

test('a new automation gets the next delivery of an existing webhook, and a duplicate and a deleted automation start nothing', async () => {
  const webhook = await create();
  const runs = async () =>
    (await db.query(`SELECT FROM runs WHERE metadata ->> 'webhook_uid' = $1`, [webhook.uid])).length;
  expect((await send(webhook, { body: '1' })).status).toBe(202);
  const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: { in: [webhook.uid] } } }];
  const body = { name: 'late', prompt: 'Look.', triggers };
  const createdAutomation = await service.request<Automation>('POST', `/factory/${factory.uid}/automations`, { body });
  expect(await runs()).toBe(0);
  expect((await send(webhook, { body: '2' })).status).toBe(202);
  expect(await runs()).toBe(1);
  expect((await send(webhook, { body: '2' })).status).toBe(202);
  await service.request('DELETE', `/factory/${factory.uid}/automations/${createdAutomation.body.uid}`);
  expect((await send(webhook, { body: '3' })).status).toBe(202);
  expect(await runs()).toBe(1);
  expect(await labels(webhook)).toEqual(['ACCEPTED', 'DUPLICATE', 'ACCEPTED', 'ACCEPTED']);
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
