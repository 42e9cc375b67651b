import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { testWebhooks } from '../../../../test/webhooks.ts';
import { deliveriesOfNoWebhook, oldDeliveries, trimPayloads } from '../../../triggers/webhooks/log/retention.ts';
import { deleteOldRows } from '../../retention/sweep.ts';

const service = await openTestService();
const { db } = service.deps;
const { base, create } = await testWebhooks(service);

describe('retention', () => {
  const age = (webhook: { uid: string }, count: number, days: number, label = 'ACCEPTED') =>
    db.query(
      `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, payload, identity_hash)
       SELECT (lpad(to_hex((extract(epoch FROM now() - $2 * interval '1 day') * 1000)::bigint + n), 12, '0') || '7' || substr(md5(random()::text), 1, 19))::uuid,
         uid, team_id, $3, 10, '\\x2020202020202020207b', sha256((random()::text)::bytea) FROM webhooks, generate_series(1, $4) n WHERE uid = $1`,
      [webhook.uid, days, label, count],
    );
  const count = async (webhook: { uid: string }) =>
    (await db.query('SELECT FROM webhook_deliveries WHERE webhook_uid = $1', [webhook.uid])).length;

  test('keeps the latest 50 deliveries of any age, and all deliveries of the last 7 days', async () => {
    const [quiet, busy] = [await create(), await create()];
    await age(quiet, 60, 100);
    await age(busy, 70, 6, 'REJECTED_AUTH');
    await age(busy, 5, 8, 'REJECTED_AUTH');
    await age(busy, 5, 29);
    await age(busy, 5, 31);
    await deleteOldRows(db, oldDeliveries);
    expect([await count(quiet), await count(busy)]).toEqual([50, 75]);
  });

  test('deletes the log of a deleted webhook', async () => {
    const webhook = await create();
    await age(webhook, 3, 1);
    await service.request('DELETE', `${base}/${webhook.uid}`);
    await deleteOldRows(db, deliveriesOfNoWebhook);
    expect(await count(webhook)).toBe(0);
  });

  test('deletes the oldest payloads of a log that has grown too large, but keeps the latest 50', async () => {
    const [webhook, other] = [await create(), await create()];
    await age(webhook, 100, 1);
    await age(other, 60, 2);
    await db.query('UPDATE webhooks SET payload_bytes = 1000000 WHERE uid = $1', [webhook.uid]);
    expect(await trimPayloads(db, 700)).toBe(37);
    expect(await trimPayloads(db, 100)).toBe(13);
    const left = async ({ uid }: { uid: string }) =>
      await db.query<{ count: number; bytes: number }>(
        'SELECT count(*) AS count, (SELECT payload_bytes FROM webhooks WHERE uid = $1) AS bytes FROM webhook_deliveries WHERE webhook_uid = $1 AND payload IS NOT NULL',
        [uid],
      );
    expect(await left(webhook)).toEqual([{ count: 50, bytes: 500 }]);
    // The log of another webhook keeps its payloads, although these payloads are older.
    expect((await left(other))[0]?.count).toBe(60);
    expect(await count(webhook)).toBe(100);
  });
});
