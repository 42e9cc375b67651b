import type { DeliveredEventType } from '@runyard/contract/event-subscriptions';
import type { Queryable, Statement } from '../store/database/database.ts';

/** A delivery whose next attempt is this process's to make. */
export interface ClaimedDelivery {
  readonly id: string;
  readonly subscription_id: string;
  readonly event: DeliveredEventType;
  readonly data: Readonly<Record<string, unknown>>;
  readonly occurred_at: string;
  /** Number of the attempt; whoever records its outcome brings it. */
  readonly attempts: number;
  readonly round_attempts: number;
  readonly url: string;
  readonly sealed_secret: Buffer;
  /** While it still signs. */
  readonly previous_sealed_secret: Buffer | null;
}

/** Longer than an attempt can take: after it the process is taken for dead, and the delivery is anyone's. */
const leaseSeconds = 30;

/**
 * Begins attempts of deliveries that are due. SKIP LOCKED and the lease keep other processes from them. So much for each subscription, so that a receiver which hangs takes no place from the others; `now()` and not
 * `clock_timestamp()`, because an index cannot be searched by a volatile function. Subscriptions whose secret this process cannot
 * open are left to those that can.
 */
const claimStatement: Statement = {
  name: 'claim_deliveries',
  text: `
    WITH due AS MATERIALIZED (
      SELECT d.id FROM event_subscriptions s
      CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM event_deliveries
        WHERE subscription_id = s.id AND status = 'pending' AND next_attempt_at <= now() AND (s.enabled OR event = 'ping')
        ORDER BY next_attempt_at
        LIMIT greatest(0, $3::int - coalesce(($2::jsonb->>s.id::text)::int, 0))
        FOR UPDATE SKIP LOCKED
      ) d
      WHERE s.vault_key_id = $1
      ORDER BY d.next_attempt_at LIMIT $4
    ), claimed AS (
      UPDATE event_deliveries d SET
        attempts = d.attempts + 1, round_attempts = d.round_attempts + 1,
        retry_until = coalesce(d.retry_until, now() + interval '24 hours'),
        next_attempt_at = now() + interval '${leaseSeconds} seconds', leased_until = now() + interval '${leaseSeconds} seconds'
      FROM due WHERE d.id = due.id
      RETURNING d.*
    )
    SELECT claimed.id, claimed.subscription_id, claimed.event, claimed.data, claimed.occurred_at, claimed.attempts,
      claimed.round_attempts, s.url, s.sealed_secret,
      CASE WHEN s.previous_secret_until > now() THEN s.previous_sealed_secret END AS previous_sealed_secret
    FROM claimed JOIN event_subscriptions s ON s.id = claimed.subscription_id`,
};

export interface ClaimLimits {
  readonly vaultKeyId: string;
  /** Attempts under way in this process, by subscription. */
  readonly underWay: Readonly<Record<string, number>>;
  readonly perSubscription: number;
  readonly atMost: number;
}

export async function claimDeliveries(db: Queryable, limits: ClaimLimits): Promise<ClaimedDelivery[]> {
  return await db.query<ClaimedDelivery>(claimStatement, [
    limits.vaultKeyId,
    JSON.stringify(limits.underWay),
    limits.perSubscription,
    limits.atMost,
  ]);
}
