import { EventPayload } from '@runyard/contract/team/event-subscriptions';
import { describe, expect, test } from 'vitest';
import { insertTeam } from '../../../test/executions.ts';
import { collectMeasurements } from '../../../test/metrics.ts';
import { deleteRows, registeredRetention } from '../../../test/retention.ts';
import { openTestSubscriptions, patience } from '../../../test/subscriptions.ts';
import { enqueuePing } from './deliveries.ts';
import { deleteSubscription, updateSubscription } from './subscriptions.ts';

const subscriptions = await openTestSubscriptions();

const { db } = subscriptions.database;

describe('a subscription', () => {
  test('is disabled at once by a 410, with the reason', async () => {
    const measured = collectMeasurements();
    const id = await subscriptions.subscribe();
    subscriptions.receiver.behave({ status: 410 });
    await subscriptions.openDeliverer();
    await subscriptions.newRun();
    expect(await subscriptions.untilAttempts(1)).toMatchObject({ status: 'failed' });
    expect(measured('runyard_subscription_attempts_total')).toEqual([{ labels: { result: 'gone' }, value: 1 }]);
    expect(await subscriptions.subscription(id)).toMatchObject({
      enabled: false,
      disabled_reason: 'The receiver answered 410: it is gone.',
      disabled_at: expect.any(String),
    });
    await subscriptions.newRun();
    expect(await subscriptions.deliveries()).toHaveLength(1);
  });

  test.each([410, 500])('is not disabled by an answer %i of the URL that it had before', async (status) => {
    const id = await subscriptions.subscribe();
    subscriptions.receiver.behave('hang');
    const deliverer = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(1);
    await updateSubscription(db, subscriptions.teamId, id, { url: `${subscriptions.receiver.url}/new` });
    subscriptions.receiver.behave({ status: 204 });
    subscriptions.receiver.release(status);
    expect(await subscriptions.untilAttempts(1)).toMatchObject({ status: 'pending', attempts: 1 });
    expect(await subscriptions.subscription(id)).toMatchObject({ enabled: true, failing_since: null });
    await subscriptions.passTime();
    await deliverer.deliver();
    expect(await subscriptions.untilAttempts(2)).toMatchObject({ status: 'delivered' });
    expect(subscriptions.receiver.received.map(({ path }) => path)).toEqual(['/hook', '/hook/new']);
  });

  test('is disabled after 5 days of failures, but not by one failure after a long pause, and works after it is enabled again', async () => {
    const id = await subscriptions.subscribe();
    subscriptions.receiver.behave({ status: 500 });
    const deliverer = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    await subscriptions.untilAttempts(1);
    const failsAgain = async (since: string, attempts: number, last = '1 day') => {
      const times = [since, last];
      await db.query(
        'UPDATE event_subscriptions SET failing_since = now() - $1::interval, failed_at = now() - $2::interval',
        times,
      );
      await subscriptions.passTime();
      await deliverer.deliver();
      await subscriptions.untilAttempts(attempts);
      return await subscriptions.subscription(id);
    };
    expect(await failsAgain('4 days 23 hours', 2)).toMatchObject({ enabled: true, disabled_reason: null });
    const anew = await failsAgain('9 days', 3, '2 days 1 minute');
    expect(anew).toMatchObject({ enabled: true, disabled_reason: null });
    expect(Date.parse(String(anew?.failing_since))).toBeGreaterThan(Date.now() - 3_600_000);
    expect(await failsAgain('5 days 1 minute', 4)).toMatchObject({
      enabled: false,
      disabled_reason: 'Every attempt for 5 days failed; the last one: it answered 500.',
    });
    await subscriptions.passTime();
    await deliverer.deliver();
    // The delivery shows one attempt more, because an attempt is counted before it is made.
    expect(await subscriptions.first()).toMatchObject({ attempts: 4 });

    subscriptions.receiver.behave({ status: 204 });
    await updateSubscription(db, subscriptions.teamId, id, { enabled: true });
    expect(await subscriptions.subscription(id)).toMatchObject({ disabled_reason: null, failing_since: null });
    await deliverer.deliver();
    expect(await subscriptions.untilAttempts(5)).toMatchObject({ status: 'delivered' });
  });

  test('gets a requested ping exactly once, even while it is disabled', async () => {
    const id = await subscriptions.subscribe({ enabled: false });
    subscriptions.receiver.behave({ status: 500 });
    await subscriptions.openDeliverer();
    await enqueuePing(db, id);
    expect(await subscriptions.untilAttempts(1)).toMatchObject({ event: 'ping', status: 'failed' });
    const payload = EventPayload.parse(JSON.parse(subscriptions.receiver.received[0]?.body ?? ''));
    expect(payload).toMatchObject({ type: 'ping', data: { subscription_id: id } });
  });

  test('gets nothing after it is deleted', async () => {
    const id = await subscriptions.subscribe();
    await subscriptions.newRun();
    await deleteSubscription(db, subscriptions.teamId, id);
    expect(await subscriptions.deliveries()).toEqual([]);
  });

  test('does not delay other subscriptions when its receiver does not answer', async () => {
    const slow = await subscriptions.subscribe();
    await Promise.all(Array.from({ length: 20 }, () => subscriptions.newRun()));
    subscriptions.receiver.behave('hang');
    const deliverer = await subscriptions.openDeliverer({ atOnce: 6, perSubscription: 4 });
    await deliverer.deliver();
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(4);
    await db.query('UPDATE event_subscriptions SET events = $2 WHERE id = $1', [slow, ['run.ended']]);
    await subscriptions.subscribe({ url: subscriptions.receiver.url.replace('/hook', '/fast') });
    subscriptions.receiver.behave({ status: 204 });
    await Promise.all(Array.from({ length: 10 }, () => subscriptions.newRun()));
    const fast = () => subscriptions.receiver.received.filter(({ path }) => path === '/fast');
    await expect.poll(() => fast().length, patience).toBe(10);
    expect(subscriptions.receiver.waiting).toBe(4);
  });

  test('does not wait for all deliveries of another team whose receivers do not answer', async () => {
    const otherTeam = await insertTeam(subscriptions.database);
    for (const path of ['/a', '/b', '/c']) await subscriptions.subscribe({ url: subscriptions.receiver.url + path });
    await Promise.all(Array.from({ length: 5 }, () => subscriptions.newRun()));
    subscriptions.receiver.behave('hang');
    const deliverer = await subscriptions.openDeliverer({ atOnce: 4, perTeam: 3, timeoutMs: 60_000 });
    await deliverer.deliver();
    // One slot is left for other teams.
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(3);
    await subscriptions.subscribe({ url: `${subscriptions.receiver.url}/other` }, otherTeam);
    await Promise.all([1, 2].map(() => subscriptions.newRun({ teamId: otherTeam })));
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(4);
    const ofOthers = () => subscriptions.receiver.received.filter(({ path }) => path.endsWith('/other')).length;
    expect(ofOthers()).toBe(1);
    // The teams take turns when attempts end, although the deliveries of the first team are older.
    subscriptions.receiver.release(500);
    await expect.poll(ofOthers, patience).toBe(2);
  });

  test('gets its deliveries even if their notice arrived while the maximum number of attempts was in progress', async () => {
    await subscriptions.subscribe();
    subscriptions.receiver.behave('hang');
    const deliverer = await subscriptions.openDeliverer({ atOnce: 1, timeoutMs: 60_000 });
    await subscriptions.newRun();
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(1);
    await subscriptions.newRun();
    // This call does the same as a notice. The maximum number of attempts is in progress, so nothing is sent.
    await deliverer.deliver();
    subscriptions.receiver.behave({ status: 204 });
    subscriptions.receiver.release(204);
    await expect.poll(() => subscriptions.receiver.received.length, patience).toBe(2);
  });
});

test('the sweep deletes deliveries that are older than 14 days, together with their attempts', async () => {
  await subscriptions.subscribe();
  await subscriptions.openDeliverer();
  await subscriptions.newRun();
  await subscriptions.untilAttempts(1);
  const rule = registeredRetention.rows.find(({ table }) => table === 'event_deliveries');
  if (!rule) throw new Error('there is no rule');
  const sweep = () => deleteRows(db, rule);
  const copyFrom = async (daysAgo: number) => {
    const hex = (Date.now() - daysAgo * 86_400_000).toString(16).padStart(12, '0');
    const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
    await db.query(
      'INSERT INTO event_deliveries (id, subscription_id, event, data) SELECT $1, subscription_id, event, data FROM event_deliveries LIMIT 1',
      [id],
    );
    await db.query(
      'INSERT INTO event_delivery_attempts (delivery_id, number, started_at, duration_ms) VALUES ($1, 1, now(), 1)',
      [id],
    );
  };
  await copyFrom(13.9);
  expect(await sweep()).toBe(0);
  await copyFrom(14.1);
  expect(await sweep()).toBe(1);
  expect(await subscriptions.deliveries()).toHaveLength(2);
});
