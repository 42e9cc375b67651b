import { randomBytes } from 'node:crypto';
import { EventPayload } from '@runyard/contract/team/event-subscriptions';
import { describe, expect, test } from 'vitest';
import { collectMeasurements } from '../../../test/metrics.ts';
import { openTestSubscriptions, patience } from '../../../test/subscriptions.ts';
import { makeVault } from '../../platform/secrets/vault.ts';
import { measureDueDeliveries } from './claim.ts';
import { redeliver } from './deliveries.ts';
import { rotateSecret } from './subscriptions.ts';

const subscriptions = await openTestSubscriptions();

const { db } = subscriptions.database;

const firstSubscription = async () => {
  const [row] = await db.query<{ id: string }>('SELECT id FROM event_subscriptions');
  return { id: row?.id ?? '' };
};

describe('a delivery', () => {
  test('is a signed POST that contains ids and the state, and no part of the prompt', async () => {
    const id = await subscriptions.subscribe();
    await subscriptions.openDeliverer();
    const runId = await subscriptions.newRun({
      prompt: 'A secret plan',
      title: 'Secret title',
      metadata: { m: 'hidden' },
    });
    const { log, ...delivery } = await subscriptions.untilAttempts(1);
    expect(delivery).toMatchObject({ status: 'delivered', attempts: 1 });
    expect(log).toEqual([{ number: 1, status: 204, error: null }]);
    const [received] = subscriptions.receiver.received;
    expect(received).toMatchObject({
      id: delivery.id,
      method: 'POST',
      path: '/hook',
      verified: true,
      headers: { 'content-type': 'application/json' },
    });
    const payload = EventPayload.parse(JSON.parse(received?.body ?? ''));
    expect(payload).toEqual({
      type: 'run.created',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      data: {
        run_id: runId,
        state: 'QUEUED',
        seq: 1,
        conversation_id: delivery.data.conversation_id,
        subscription_id: id,
        session_link: `http://runyard.test/runs/${runId}`,
      },
    });
    expect(received?.body).not.toMatch(/secret|hidden/i);
  });

  test('is sent by the next process that starts, if no deliverer ran when it was enqueued', async () => {
    const measured = collectMeasurements();
    const due = async () => (await measureDueDeliveries(db)).map(({ value }) => value);
    await subscriptions.subscribe();
    await subscriptions.newRun();
    expect(await due()).toEqual([1]);
    const deliverer = await subscriptions.openDeliverer();
    await deliverer.deliver();
    expect((await subscriptions.untilAttempts(1)).status).toBe('delivered');
    expect(await due()).toEqual([0]);
    expect(measured('runyard_subscription_attempts_total')).toEqual([{ labels: { result: 'delivered' }, value: 1 }]);
    expect(measured('runyard_subscription_attempt_duration_seconds')).toEqual([
      { labels: {}, value: expect.toSatisfy((seconds) => seconds > 0 && seconds < 60) },
    ]);
  });

  test('is signed with the old and the new secret for 24 h after a rotation', async () => {
    const id = await subscriptions.subscribe();
    const [old = ''] = subscriptions.receiver.secrets;
    const rotated = await rotateSecret(db, subscriptions.vault, subscriptions.teamId, id);
    const fresh = subscriptions.vault.open(
      `event subscription ${id}`,
      Buffer.from(rotated?.sealedSecret ?? '', 'base64'),
    );
    await subscriptions.openDeliverer();
    const sends = async () => {
      const before = subscriptions.receiver.received.length;
      await subscriptions.newRun();
      await expect.poll(() => subscriptions.receiver.received.length, patience).toBe(before + 1);
      return subscriptions.receiver.received.at(-1);
    };
    expect(await sends()).toMatchObject({ verified: true });
    subscriptions.receiver.secrets = [fresh];
    expect(await sends()).toMatchObject({ verified: true });
    await db.query("UPDATE event_subscriptions SET previous_secret_until = now() - interval '1 second'");
    expect(await sends()).toMatchObject({ verified: true });
    subscriptions.receiver.secrets = [old];
    expect(await sends()).toMatchObject({ verified: false });
  });

  test("is not sent by a process that cannot decrypt the subscription's secret", async () => {
    await subscriptions.subscribe();
    const stranger = await subscriptions.openDeliverer({}, makeVault(randomBytes(32)));
    await subscriptions.newRun();
    await stranger.deliver();
    expect(await subscriptions.first()).toMatchObject({ status: 'pending', attempts: 0 });
    await (await subscriptions.openDeliverer()).deliver();
    expect((await subscriptions.untilAttempts(1)).status).toBe('delivered');
  });
});

describe('a failed attempt', () => {
  test('is repeated for 24 h with the same webhook-id, after longer and longer waits', async () => {
    const id = await subscriptions.subscribe();
    subscriptions.receiver.behave({ status: 500 });
    const deliverer = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    for (const [index, wait] of [5, 20, 80, 320].entries()) {
      if (index > 0) await subscriptions.passTime();
      await deliverer.deliver();
      const delivery = await subscriptions.untilAttempts(index + 1);
      expect(delivery.status).toBe('pending');
      // The time counts from the end of an attempt, which is recorded a moment later.
      expect(delivery.waits).toBeGreaterThan(wait - 2);
      expect(delivery.waits).toBeLessThan(wait * 3);
    }
    expect(await subscriptions.subscription(id)).toMatchObject({ enabled: true, failing_since: expect.any(String) });
    // The remaining time of the 24 h is shorter than the wait, so the last attempt is at the end of the 24 h.
    await db.query("UPDATE event_deliveries SET retry_until = now() + interval '10 seconds'");
    await subscriptions.passTime();
    await deliverer.deliver();
    const last = await subscriptions.untilAttempts(5);
    expect(last.status).toBe('pending');
    expect(last.waits).toBeLessThan(11);
    await db.query("UPDATE event_deliveries SET retry_until = now() - interval '1 second'");
    await subscriptions.passTime();
    await deliverer.deliver();
    expect(await subscriptions.untilAttempts(6)).toMatchObject({ status: 'failed' });
    await deliverer.deliver();
    expect(new Set(subscriptions.receiver.received.map((each) => each.id)).size).toBe(1);
    expect(subscriptions.receiver.received).toHaveLength(6);
  });

  test.each([429, 503])('with the status %i is repeated after the time in Retry-After', async (status) => {
    await subscriptions.subscribe();
    subscriptions.receiver.behave({ status, headers: { 'retry-after': '1800' } });
    await subscriptions.openDeliverer();
    await subscriptions.newRun();
    const { waits, log } = await subscriptions.untilAttempts(1);
    expect(waits).toBeGreaterThan(1_798);
    expect(waits).toBeLessThan(1_860);
    expect(log).toEqual([{ number: 1, status, error: `it answered ${status}` }]);
  });

  test.each([
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1/' } }, /302: redirects are not followed/],
    ['a 404', { status: 404 }, /it answered 404/],
    ['a reset', 'reset', /reset/],
    ['silence', 'hang', /no answer within 1 s/],
  ] as const)('can be caused by %s', async (_, behaviour, error) => {
    const measured = collectMeasurements();
    await subscriptions.subscribe();
    subscriptions.receiver.behave(behaviour);
    await subscriptions.openDeliverer({ timeoutMs: behaviour === 'hang' ? 1_000 : 60_000 });
    await subscriptions.newRun();
    const delivery = await subscriptions.untilAttempts(1);
    expect(delivery.status).toBe('pending');
    expect(delivery.log[0]?.error).toMatch(error);
    expect(subscriptions.receiver.received).toHaveLength(1);
    expect(measured('runyard_subscription_attempts_total')).toEqual([{ labels: { result: 'failed' }, value: 1 }]);
  });

  test('does not count any more after the next success', async () => {
    const id = await subscriptions.subscribe();
    subscriptions.receiver.behave({ status: 500 });
    const deliverer = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    await subscriptions.untilAttempts(1);
    subscriptions.receiver.behave({ status: 200 });
    await subscriptions.passTime();
    await deliverer.deliver();
    expect(await subscriptions.untilAttempts(2)).toMatchObject({ status: 'delivered' });
    expect(await subscriptions.subscription(id)).toMatchObject({ failing_since: null, enabled: true });
  });
});

describe('several processes', () => {
  test('send every delivery exactly once', async () => {
    await subscriptions.subscribe();
    const deliverers = await Promise.all([1, 2, 3].map(() => subscriptions.openDeliverer()));
    await Promise.all(Array.from({ length: 60 }, () => subscriptions.newRun()));
    await Promise.all(deliverers.map((deliverer) => deliverer.deliver()));
    await expect
      .poll(async () => (await subscriptions.deliveries()).every(({ status }) => status === 'delivered'), patience)
      .toBe(true);
    const ids = subscriptions.receiver.received.map(({ id }) => id);
    expect(ids).toHaveLength(60);
    expect(new Set(ids).size).toBe(60);
  });

  test('lose their deliveries when the lease ends, and answers that arrive after that are ignored', async () => {
    await subscriptions.subscribe();
    subscriptions.receiver.behave('hang');
    const slow = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(1);
    const other = await subscriptions.openDeliverer();
    await other.deliver();
    expect(await subscriptions.first()).toMatchObject({ attempts: 1, waits: expect.closeTo(30, -1) });
    expect(await redeliver(db, (await firstSubscription()).id, (await subscriptions.first()).id)).toEqual({
      kind: 'under_way',
    });
    subscriptions.receiver.behave({ status: 500 });
    await subscriptions.passTime();
    await other.deliver();
    expect((await subscriptions.untilAttempts(1)).log).toEqual([{ number: 2, status: 500, error: 'it answered 500' }]);
    subscriptions.receiver.release(204);
    await slow.close();
    expect(await subscriptions.first()).toMatchObject({ status: 'pending', attempts: 2 });
    expect(new Set(subscriptions.receiver.received.map(({ id }) => id)).size).toBe(1);
  });

  test('let other processes send their unfinished deliveries at once when they stop', async () => {
    await subscriptions.subscribe();
    subscriptions.receiver.behave('hang');
    const stopping = await subscriptions.openDeliverer();
    await subscriptions.newRun();
    await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(1);
    await stopping.close();
    expect(await subscriptions.first()).toMatchObject({ status: 'pending', attempts: 1, log: [] });
    subscriptions.receiver.behave({ status: 204 });
    await (await subscriptions.openDeliverer()).deliver();
    expect(await subscriptions.untilAttempts(1)).toMatchObject({ status: 'delivered' });
  });
});
