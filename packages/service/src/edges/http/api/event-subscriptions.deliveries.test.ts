import { randomUUIDv7 } from 'node:crypto';
import { EventDelivery } from '@runyard/contract/team/event-subscriptions';
import { beforeEach, describe, expect, test } from 'vitest';
import { base, testEventSubscriptions } from '../../../../test/event-subscriptions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
beforeEach(() => service.deps.db.query('DELETE FROM event_subscriptions'));

const { create, deliveriesOf } = testEventSubscriptions(service);

describe('POST …/test', () => {
  test('answers 202 with a pending ping', async () => {
    const { id } = await create({ enabled: false });
    const ping = EventDelivery.parse(await service.ok('POST', `${base}/${id}/test`));
    expect(ping).toMatchObject({ event: 'ping', status: 'pending', attempts: [], next_attempt_at: expect.any(String) });
    expect((await deliveriesOf(id)).deliveries).toEqual([ping]);
  });

  test('answers 400 for an Idempotency-Key with a space', async () => {
    const { id } = await create();
    const headers = { 'idempotency-key': 'a b' };
    const problem = await service.problem(400, 'POST', `${base}/${id}/test`, { headers });
    expect(problem.errors?.[0]?.path).toBe('Idempotency-Key');
  });

  test('sends one ping for two requests with the same Idempotency-Key', async () => {
    const { id } = await create();
    const ask = () =>
      service.request<EventDelivery>('POST', `${base}/${id}/test`, { headers: { 'idempotency-key': id } });
    expect((await ask()).body.id).toBe((await ask()).body.id);
    const other = await create();
    await service.problem(409, 'POST', `${base}/${other.id}/test`, { headers: { 'idempotency-key': id } });
  });

  test('answers 404 for an unknown id', async () => {
    await service.problem(404, 'POST', `${base}/${randomUUIDv7()}/test`);
  });
});

describe('GET …/deliveries', () => {
  test('pages newest first, filtered by status', async () => {
    const { id } = await create();
    const runIds = [];
    for (let n = 0; n < 5; n += 1) runIds.unshift(await service.newRun());
    const [newest] = (await deliveriesOf(id)).deliveries;
    await service.deps.db.query("UPDATE event_deliveries SET status = 'failed' WHERE id = $1", [newest?.id]);
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await deliveriesOf(id, `?limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...page.deliveries.map(({ run_id }) => run_id ?? ''));
      cursor = page.page_info.next_cursor ?? '';
    } while (cursor);
    expect(seen).toEqual(runIds);
    const failed = await deliveriesOf(id, '?status=failed');
    expect(failed.deliveries.map(({ run_id }) => run_id)).toEqual([runIds[0]]);
    expect(failed.deliveries[0]).not.toHaveProperty('next_attempt_at');
  });

  test('shows the attempts with status, duration and error', async () => {
    const { id } = await create();
    await service.newRun();
    const [delivery] = (await deliveriesOf(id)).deliveries;
    await service.deps.db.query(
      `INSERT INTO event_delivery_attempts (delivery_id, number, started_at, duration_ms, http_status, error)
       VALUES ($1, 2, now(), 7, 500, 'it answered 500'), ($1, 1, now(), 10000, NULL, 'no answer within 10 s')`,
      [delivery?.id],
    );
    expect((await deliveriesOf(id)).deliveries[0]?.attempts).toEqual([
      { number: 1, started_at: expect.stringMatching(/Z$/), duration_ms: 10_000, error: 'no answer within 10 s' },
      { number: 2, started_at: expect.stringMatching(/Z$/), duration_ms: 7, status: 500, error: 'it answered 500' },
    ]);
  });

  test('answers 400 for another list’s cursor and a wrong limit or status, 404 for an unknown subscription', async () => {
    const { id } = await create();
    const other = await create();
    await service.newRun();
    await service.newRun();
    const { page_info } = await deliveriesOf(other.id, '?limit=1');
    await service.problem(400, 'GET', `${base}/${id}/deliveries?cursor=${page_info.next_cursor}`);
    await service.problem(400, 'GET', `${base}/${id}/deliveries?cursor=x`);
    await service.problem(400, 'GET', `${base}/${id}/deliveries?limit=0`);
    await service.problem(400, 'GET', `${base}/${id}/deliveries?status=lost`);
    await service.problem(404, 'GET', `${base}/${randomUUIDv7()}/deliveries`);
  });
});

describe('POST …/redeliver', () => {
  const failedDelivery = async (more = {}) => {
    const { id } = await create(more);
    await service.newRun();
    const [delivery] = (await deliveriesOf(id)).deliveries;
    await service.deps.db.query(
      `UPDATE event_deliveries SET status = 'failed', attempts = 12, round_attempts = 12, retry_until = now() WHERE id = $1`,
      [delivery?.id],
    );
    return { id, path: `${base}/${id}/deliveries/${delivery?.id}/redeliver`, deliveryId: delivery?.id };
  };

  test('answers 202 and makes the delivery pending again, with retries for another 24 h', async () => {
    const { path, deliveryId } = await failedDelivery();
    const answer = await service.ok('POST', path);
    expect(EventDelivery.parse(answer)).toMatchObject({ id: deliveryId, status: 'pending' });
    const [row] = await service.deps.db.query('SELECT * FROM event_deliveries WHERE id = $1', [deliveryId]);
    expect(row).toMatchObject({ round_attempts: 0, attempts: 12, retry_until: null });
  });

  test('answers 409 if the subscription is disabled or the delivery is being sent', async () => {
    const { id, path, deliveryId } = await failedDelivery();
    await service.deps.db.query(
      `UPDATE event_deliveries SET status = 'pending', leased_until = now() + interval '1 minute' WHERE id = $1`,
      [deliveryId],
    );
    expect(await service.problem(409, 'POST', path)).toMatchObject({ detail: 'The delivery is being sent right now.' });
    await service.request('PATCH', `${base}/${id}`, { body: { enabled: false } });
    expect((await service.problem(409, 'POST', path)).detail).toMatch(/disabled/);
  });

  test('answers 404 for another subscription’s delivery and an unknown id', async () => {
    const { deliveryId } = await failedDelivery();
    const other = await create();
    await service.problem(404, 'POST', `${base}/${other.id}/deliveries/${deliveryId}/redeliver`);
    await service.problem(404, 'POST', `${base}/${other.id}/deliveries/${randomUUIDv7()}/redeliver`);
    await service.problem(404, 'POST', `${base}/${other.id}/deliveries/x/redeliver`);
  });
});
