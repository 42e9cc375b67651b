/**
 * Handles deliveries that this process cannot sign, because the secret of their subscription was encrypted with a key that this process
 * does not have.
 */
import { describeKeyProblem, type KeyPlace } from '../../platform/secrets/key-problem.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';
import { sealedSubscriptions } from './secret.ts';

/**
 * Time for which a due delivery waits for a process with the right key, in seconds. Such a process begins a due delivery within about a
 * second. So if a delivery waits longer than this, no process has the key.
 */
const patienceSeconds = 10;

/** The reason for the failure, as the delivery's record shows it. */
export const otherKey =
  'the secret was encrypted with another key: restore the right secrets-key (or RUNYARD_SECRETS_KEY) and restart, and the delivery is sent; or rotate the secret';

const giveUp = defineStatement({
  name: 'give_up_unsigned_deliveries',
  text: `
    WITH due AS MATERIALIZED (
      SELECT d.id FROM event_subscriptions s
      CROSS JOIN LATERAL (
        SELECT id FROM event_deliveries
        WHERE subscription_id = s.id AND status = 'pending' AND next_attempt_at <= now() - make_interval(secs => $2::float8)
          AND (s.enabled OR event = 'ping')
        ORDER BY next_attempt_at LIMIT 100
        FOR UPDATE SKIP LOCKED
      ) d
      WHERE s.vault_key_id <> ALL($1::text[]) AND NOT EXISTS (
        SELECT FROM event_deliveries b WHERE b.subscription_id = s.id AND b.status = 'pending' AND b.leased_until > now())
      LIMIT 1000
    ), given_up AS (
      UPDATE event_deliveries d SET status = 'failed', attempts = d.attempts + 1, unsigned_since = now(), leased_until = NULL
      FROM due WHERE d.id = due.id RETURNING d.id, d.attempts
    ), attempt AS (
      INSERT INTO event_delivery_attempts (delivery_id, number, started_at, duration_ms, error)
      SELECT id, attempts, now(), 0, $3 FROM given_up
    )
    SELECT id FROM given_up`,
  row: { id: uuid },
});

/** Pings are not sent again, because the person who sent the ping looks at the result at once. */
const sendAgain = defineStatement({
  name: 'send_unsigned_deliveries_again',
  text: `
    UPDATE event_deliveries d SET status = 'pending', unsigned_since = NULL, round_attempts = 0, retry_until = NULL,
      next_attempt_at = now()
    FROM event_subscriptions s
    WHERE d.unsigned_since IS NOT NULL AND d.event <> 'ping' AND s.id = d.subscription_id AND s.vault_key_id = ANY($1::text[])
    RETURNING d.id`,
  row: { id: uuid },
});

/** Finds a delivery that failed because no process could sign it. */
export const unsignedDeliveries = defineStatement({
  name: 'find_unsigned_deliveries',
  text: 'SELECT FROM event_deliveries WHERE unsigned_since IS NOT NULL LIMIT 1',
  row: {},
});

/**
 * Marks due deliveries that no process can sign as failed, with the reason. Also makes deliveries that failed for this reason due again if
 * this process can sign them now, because the right key was restored or the secret was rotated.
 */
export async function settleUnsigned(
  db: Queryable,
  vaultKeyIds: readonly string[],
): Promise<{ readonly givenUp: number; readonly sentAgain: number }> {
  const again = await db.query(sendAgain, [vaultKeyIds]);
  const lost = await db.query(giveUp, [vaultKeyIds, patienceSeconds, otherKey]);
  return { givenUp: lost.length, sentAgain: again.length };
}

/**
 * Checks that the keys of this process decrypt the secrets of subscriptions. Returns null if they do, else a fault that names the file to
 * copy.
 */
export async function findKeyProblemOfSubscriptions(db: Queryable, place: KeyPlace): Promise<string | null> {
  const [row] = await db.query(sealedSubscriptions.countOthers, [place.keyIds]);
  const count = row?.count ?? 0;
  if (count === 0) return null;
  return describeKeyProblem(place, {
    sealed: `the secrets of ${count} event ${count === 1 ? 'subscription' : 'subscriptions'}`,
    effect: 'so their deliveries fail',
    afterwards: 'what has failed is sent then',
    otherwise: 'rotate the secret of each',
  });
}
