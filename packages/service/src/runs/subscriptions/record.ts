import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';

export interface AttemptOutcome {
  readonly deliveryId: string;
  /** The URL that the attempt called. If the subscription has another URL now, the outcome does not count for the subscription. */
  readonly url: string;
  /** Number of the attempt. If a later attempt has begun, the outcome is ignored. */
  readonly number: number;
  readonly result: 'delivered' | 'failed' | 'gone';
  readonly httpStatus: number | null;
  readonly error: string | null;
  readonly durationMs: number;
  /** Time until the next attempt. Has no effect if no attempt follows. */
  readonly delayMs: number;
}

/** A subscription is disabled after this time without a success. */
const disableAfter = '5 days';
/**
 * If the last recorded failure of a subscription is longer ago than this, the next failure counts as the first one, and `disableAfter`
 * begins then. The pause must be longer than a day, because the attempts of one delivery take up to a day.
 */
const longestPause = '2 days';

/**
 * Writes the outcome to the delivery, the log of attempts and the subscription, in one statement. Writes nothing if a later attempt has
 * begun. If an attempt fails before `retry_until`, the next attempt is at `retry_until` at the latest.
 */
const record = defineStatement({
  name: 'record_delivery_attempt',
  text: `
    WITH done AS (
      UPDATE event_deliveries SET
        status = CASE WHEN $3 = 'delivered' THEN 'delivered'
          WHEN clock_timestamp() >= retry_until THEN 'failed'
          WHEN $3 = 'gone' AND $8 = (SELECT s.url FROM event_subscriptions s WHERE s.id = subscription_id) THEN 'failed'
          ELSE 'pending' END,
        delivered_at = CASE WHEN $3 = 'delivered' THEN clock_timestamp() END,
        next_attempt_at = least(clock_timestamp() + make_interval(secs => $7::float8 / 1000), retry_until),
        leased_until = NULL
      WHERE id = $1 AND attempts = $2 AND status = 'pending'
      RETURNING id, subscription_id, clock_timestamp() - make_interval(secs => $6::float8 / 1000) AS started_at
    ), attempt AS (
      INSERT INTO event_delivery_attempts (delivery_id, number, started_at, duration_ms, http_status, error)
      SELECT id, $2, started_at, round($6::float8), $4, $5 FROM done
    ), recovered AS (
      UPDATE event_subscriptions s SET failing_since = NULL
      FROM done WHERE s.id = done.subscription_id AND $3 = 'delivered' AND s.failing_since IS NOT NULL
    ), failing AS (
      UPDATE event_subscriptions s SET
        failing_since = CASE WHEN now.is_first THEN done.started_at ELSE s.failing_since END,
        failed_at = done.started_at,
        enabled = s.enabled AND NOT now.ends,
        disabled_reason = CASE WHEN s.enabled AND now.ends THEN now.reason ELSE s.disabled_reason END,
        disabled_at = CASE WHEN s.enabled AND now.ends THEN clock_timestamp() ELSE s.disabled_at END,
        updated_at = CASE WHEN s.enabled AND now.ends THEN clock_timestamp() ELSE s.updated_at END
      FROM done, event_subscriptions before, LATERAL (
        SELECT f.is_first, before.channel IS NULL AND ($3 = 'gone' OR NOT f.is_first AND before.failing_since < clock_timestamp() - interval '${disableAfter}') AS ends,
          CASE WHEN $3 = 'gone' THEN 'The receiver answered 410: it is gone.'
            ELSE 'Every attempt for ${disableAfter} failed; the last one: ' || $5 || '.' END AS reason
        FROM (SELECT before.failing_since IS NULL OR before.failed_at < done.started_at - interval '${longestPause}' AS is_first) f
      ) now
      WHERE s.id = done.subscription_id AND before.id = s.id AND $3 <> 'delivered' AND s.url = $8
        AND (now.is_first OR now.ends OR before.failed_at < done.started_at - interval '1 hour')
    )
    SELECT id FROM done`,
  row: { id: uuid },
});

const release = defineStatement({
  name: 'release_delivery',
  text: `
    UPDATE event_deliveries SET next_attempt_at = clock_timestamp(), leased_until = NULL, round_attempts = round_attempts - 1
    WHERE id = $1 AND attempts = $2 AND status = 'pending'`,
  row: {},
});

/**
 * Records the outcome of an attempt. Returns false if the lease had ended and another process has begun the next
 * attempt.
 */
export async function recordAttempt(db: Queryable, outcome: AttemptOutcome): Promise<boolean> {
  const rows = await db.query(record, [
    outcome.deliveryId,
    outcome.number,
    outcome.result,
    outcome.httpStatus,
    outcome.error,
    outcome.durationMs,
    outcome.delayMs,
    outcome.url,
  ]);
  return rows.length === 1;
}

/** Records that an attempt was stopped. The delivery is due again at once, and the attempt does not count. */
export async function releaseDelivery(db: Queryable, deliveryId: string, number: number): Promise<void> {
  await db.query(release, [deliveryId, number]);
}
