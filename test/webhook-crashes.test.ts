/**
 * Tests three service processes on one database. The test kills them while they receive webhook deliveries, and senders repeat failed
 * deliveries as providers do.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { WebhookWithSecret } from '@runyard/contract/webhooks/webhooks';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from '../packages/service/test/database.ts';
import { closeAtEnd } from './support/close-at-end.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

const key = `ryk_${'webhooks'.repeat(6)}`;
const database = closeAtEnd(await createTestDatabase());
const services: OneService[] = [];
afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
});

/** Number of senders. There are so many that the service writes several deliveries together. */
const senders = 24;
const kills = 2;
const webhookCount = 12;

async function post<T>(url: string, body: unknown): Promise<T> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return (await response.json()) as T;
}

test('killed services lose no delivery that they answered with 202, accept no delivery twice, and start one run for each delivery', {
  timeout: 300_000,
}, async () => {
  const secretsKey = Buffer.alloc(32, 7).toString('base64');
  const start = async () =>
    await startService({ databaseUrl: database.url, key, env: { RUNYARD_SECRETS_KEY: secretsKey } });
  // Start one service first, which migrates the database.
  services.push(await start());
  services.push(...(await Promise.all([start(), start()])));
  const api = `${services[0]?.origin}/api/v1/factory`;
  const { uid } = await post<{ uid: string }>(api, { name: 'F' });
  const webhooks = await Promise.all(
    Array.from({ length: webhookCount }, () => post<WebhookWithSecret>(`${api}/${uid}/webhooks`, { name: 'W' })),
  );
  const { uid: automation } = await post<{ uid: string }>(`${api}/${uid}/automations`, {
    name: 'A',
    prompt: 'a',
    triggers: [{ provider: 'webhook', event: 'received', filter: { webhook_ids: webhooks.map((each) => each.uid) } }],
  });

  const answered = new Map<string, string>();
  let stopping = false;
  // Pause the senders, because a service starts slowly while all of them send.
  let pause = Promise.withResolvers<void>();
  pause.resolve();
  const load = Array.from({ length: senders }, async (_, sender) => {
    while (!stopping) {
      const id = randomUUID();
      for (let tries = 0; ; tries += 1) {
        const service = services[(sender + tries) % services.length];
        const webhook = webhooks[sender % webhookCount];
        const response = await fetch(`${service?.origin}/webhooks/w/${webhook?.uid}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${webhook?.secret}`, 'x-service-delivery-id': id },
          body: JSON.stringify({ id }),
        }).catch(() => null);
        if (response?.status === 202) {
          answered.set(id, ((await response.json()) as { delivery_id: string }).delivery_id);
          await delay(120);
          await pause.promise;
          break;
        }
        await delay(50);
      }
    }
  });
  // Reset the used budget, because the senders are faster than the budget of their webhooks.
  const budget = (async () => {
    while (!stopping) {
      await database.db.query(`UPDATE webhooks SET recent = '{}'`).catch(() => undefined);
      await delay(250);
    }
  })();
  for (let kill = 0; kill < kills; kill += 1) {
    const more = async (count: number) => {
      const before = answered.size;
      await eventually('deliveries', async () => answered.size > before + count);
    };
    await more(20);
    const place = kill % services.length;
    await services[place]?.kill();
    // While this service is down, the other services accept the deliveries that the senders repeat.
    await more(senders);
    pause = Promise.withResolvers();
    services[place] = await start();
    pause.resolve();
  }
  stopping = true;
  await Promise.all(load);
  await budget;

  const rows = await database.db.query<{ id: string; identity: string; label: string }>(
    'SELECT id, identity, label FROM webhook_deliveries',
  );
  const accepted = rows.filter(({ label }) => label === 'ACCEPTED').map(({ identity }) => identity);
  expect(answered.size).toBeGreaterThan(kills * 20);
  expect(new Set(accepted).size).toBe(accepted.length);
  expect([...answered.keys()].filter((id) => !accepted.includes(id))).toEqual([]);
  expect([...answered.values()].filter((id) => !rows.some((row) => row.id === id))).toEqual([]);

  const runs = await database.db.query<{ id: string; delivery: string }>(
    `SELECT id, metadata ->> 'delivery_id' AS delivery FROM runs WHERE metadata ->> 'automation_id' = $1`,
    [automation],
  );
  const acceptedIds = rows.filter(({ label }) => label === 'ACCEPTED').map(({ id }) => id);
  expect(runs.map(({ delivery }) => delivery).toSorted()).toEqual(acceptedIds.toSorted());
  // Check that each run has the payload and the start of its own delivery.
  const whole = await database.db.query<{ id: string }>(
    `SELECT d.id FROM webhook_deliveries d JOIN runs r ON r.metadata ->> 'delivery_id' = d.id::text AND d.runs = ARRAY[r.id::text]
       JOIN attachments a ON a.run_id = r.id AND a.content = d.payload JOIN starts s ON s.run_id = r.id AND s.delivery_id = d.id`,
  );
  expect(whole.map(({ id }) => id).toSorted()).toEqual(acceptedIds.toSorted());
});
