import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openTestSubscriptions, patience } from '../../../test/subscriptions.ts';
import { makeVault } from '../../platform/secrets/vault.ts';
import { enqueuePing, redeliver } from './deliveries.ts';
import { rotateSecret } from './subscriptions.ts';
import { findKeyProblemOfSubscriptions, otherKey, settleUnsigned } from './unsigned.ts';

const subscriptions = await openTestSubscriptions();
const { db } = subscriptions.database;
const otherVault = makeVault(randomBytes(32));

const passSeconds = (seconds: number) =>
  db.query('UPDATE event_deliveries SET next_attempt_at = next_attempt_at - make_interval(secs => $1)', [seconds]);
const settle = (vault = otherVault) => settleUnsigned(db, vault.keyIds);

test('a delivery that no process can sign fails, and its record contains the reason', async () => {
  await subscriptions.subscribe();
  await subscriptions.newRun();
  expect(await settle()).toEqual({ givenUp: 0, sentAgain: 0 });
  await passSeconds(11);
  expect(await settle()).toEqual({ givenUp: 1, sentAgain: 0 });
  expect(await subscriptions.first()).toMatchObject({
    status: 'failed',
    attempts: 1,
    log: [{ number: 1, status: null, error: otherKey }],
  });
  expect(await settle()).toEqual({ givenUp: 0, sentAgain: 0 });
});

test('deliveries are left to a process that has the right key and sends deliveries', async () => {
  await subscriptions.subscribe();
  subscriptions.receiver.behave('hang');
  await subscriptions.openDeliverer({ perSubscription: 1 });
  await subscriptions.newRun();
  await subscriptions.newRun();
  await expect.poll(() => subscriptions.receiver.waiting, patience).toBe(1);
  await db.query(
    `UPDATE event_deliveries SET next_attempt_at = now() - interval '1 minute' WHERE leased_until IS NULL`,
  );
  expect(await settle()).toEqual({ givenUp: 0, sentAgain: 0 });
});

test('deliveries that failed without a signature are sent again, with the same id, when the right key is restored', async () => {
  await subscriptions.subscribe();
  await subscriptions.newRun();
  await passSeconds(11);
  await settle();
  const { id } = await subscriptions.first();
  expect(await settle(subscriptions.vault)).toEqual({ givenUp: 0, sentAgain: 1 });
  const deliverer = await subscriptions.openDeliverer();
  await deliverer.deliver();
  expect(await subscriptions.untilAttempts(2)).toMatchObject({ id, status: 'delivered' });
  expect(await settle(subscriptions.vault)).toEqual({ givenUp: 0, sentAgain: 0 });
});

test('a delivery that failed without a signature is sent again after the secret was rotated, and other failed deliveries are not', async () => {
  const id = await subscriptions.subscribe();
  await subscriptions.newRun();
  await passSeconds(11);
  await settle();
  await db.query(
    `INSERT INTO event_deliveries (subscription_id, event, data, status) VALUES ($1, 'run.ended', '{}', 'failed')`,
    [id],
  );
  await rotateSecret(db, otherVault, subscriptions.teamId, id);
  expect(await settle()).toEqual({ givenUp: 0, sentAgain: 1 });
  expect((await subscriptions.deliveries()).map(({ status }) => status)).toEqual(['pending', 'failed']);
});

test('a ping is never sent again, and a delivery that a person has already sent again is not sent once more', async () => {
  const id = await subscriptions.subscribe();
  const ping = await enqueuePing(db, id);
  await passSeconds(11);
  expect(await settle()).toEqual({ givenUp: 1, sentAgain: 0 });
  expect(await settle(subscriptions.vault)).toEqual({ givenUp: 0, sentAgain: 0 });
  await redeliver(db, id, ping.id);
  const deliverer = await subscriptions.openDeliverer();
  await deliverer.deliver();
  expect(await subscriptions.untilAttempts(2)).toMatchObject({ status: 'delivered' });
});

test('the check of the keys names the file that is missing or has the wrong key, or the setting with the wrong key', async () => {
  const file = '/data/secrets-key';
  const problem = (keyId: string | undefined, isSetting = false) =>
    findKeyProblemOfSubscriptions(db, { keyIds: keyId === undefined ? [] : [keyId], file, isSetting });
  expect(await problem(undefined)).toBeNull();
  await subscriptions.subscribe();
  expect(await problem(subscriptions.vault.keyId)).toBeNull();
  expect(await problem(undefined)).toMatch(
    /^\/data\/secrets-key is missing: it holds the key that opens the secrets of 1 event subscription, .* Copy secrets-key to \/data\/secrets-key from/,
  );
  expect(await problem(otherVault.keyId)).toContain('/data/secrets-key does not hold the key that opens');
  expect(await problem(otherVault.keyId, true)).toMatch(/^RUNYARD_SECRETS_KEY is not the key .* Set it to the key/);
});
