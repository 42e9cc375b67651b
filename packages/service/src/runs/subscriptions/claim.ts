import type { DeliveredEventType } from '@runyard/contract/team/event-subscriptions';
import { type Reading, reading } from '../../platform/metrics/gauges.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import type { ChannelName } from './channels.ts';

const measureDue = defineStatement({
  name: 'measure_due_deliveries',
  text: `
    SELECT count(*) AS due FROM (
      SELECT FROM event_subscriptions s, LATERAL (
        SELECT FROM event_deliveries d WHERE d.subscription_id = s.id AND d.status = 'pending' AND d.next_attempt_at <= now() LIMIT 10000) d
      WHERE s.enabled LIMIT 100000) found`,
  row: { due: integer },
});

/** Counts the deliveries whose next attempt is due. */
export async function measureDueDeliveries(db: Queryable): Promise<Reading[]> {
  const [row] = await db.query(measureDue);
  return [reading('runyard_subscription_deliveries_due', {}, row?.due ?? 0)];
}

/**
 * Length of the lease of an attempt; it is longer than the longest attempt. If the lease ends, the process that made the attempt counts as
 * dead, and any process may claim the delivery.
 */
const leaseSeconds = 30;

/**
 * Begins attempts of deliveries that are due. Because of SKIP LOCKED and the lease, no other process begins the same attempts. Each
 * subscription has a limit, so that a receiver that does not answer leaves connections for other receivers. Teams take turns, beginning
 * with the team that has the fewest attempts in progress. So a team whose receivers do not answer delays other teams only by one attempt,
 * and not by all its waiting deliveries. The statement uses `now()` and not `clock_timestamp()`, because an index cannot be searched with
 * a volatile function.
 * A process claims no deliveries of subscriptions whose secret it cannot decrypt.
 */
const claimDue = defineStatement({
  name: 'claim_deliveries',
  text: `
    WITH found AS MATERIALIZED (
      SELECT d.id, d.next_attempt_at, coalesce(($5::jsonb->>s.team_id::text)::int, 0)
        + row_number() OVER (PARTITION BY s.team_id ORDER BY d.next_attempt_at) AS turn
      FROM event_subscriptions s
      CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM event_deliveries
        WHERE subscription_id = s.id AND status = 'pending' AND next_attempt_at <= now() AND (s.enabled OR event = 'ping')
        ORDER BY next_attempt_at
        LIMIT greatest(0, $3::int - coalesce(($2::jsonb->>s.id::text)::int, 0))
        FOR UPDATE SKIP LOCKED
      ) d
      WHERE s.vault_key_id = ANY($1::text[])
    ), due AS MATERIALIZED (
      SELECT id FROM found WHERE turn <= $6 ORDER BY turn, next_attempt_at LIMIT $4
    ), claimed AS (
      UPDATE event_deliveries d SET
        attempts = d.attempts + 1, round_attempts = d.round_attempts + 1,
        retry_until = coalesce(d.retry_until, now() + interval '24 hours'),
        next_attempt_at = now() + interval '${leaseSeconds} seconds', leased_until = now() + interval '${leaseSeconds} seconds'
      FROM due WHERE d.id = due.id
      RETURNING d.*
    )
    SELECT claimed.id, claimed.subscription_id, s.team_id, claimed.event, claimed.data, claimed.occurred_at, claimed.attempts,
      claimed.round_attempts, s.url, s.channel, s.sealed_secret,
      CASE WHEN s.previous_secret_until > now() THEN s.previous_sealed_secret END AS previous_sealed_secret
    FROM claimed JOIN event_subscriptions s ON s.id = claimed.subscription_id`,
  row: {
    id: uuid,
    subscription_id: uuid,
    team_id: uuid,
    /** `notice`: a text for a channel. */
    event: text<DeliveredEventType | 'notice'>(),
    data: json<Readonly<Record<string, unknown>>>(),
    occurred_at: timestamp,
    /** Number of this attempt. The outcome of the attempt is recorded only if no later attempt has begun. */
    attempts: integer,
    round_attempts: integer,
    url: text(),
    /** NULL: the delivery is sent to the URL. Otherwise the channel delivers it. */
    channel: nullable(text<ChannelName>()),
    sealed_secret: bytes,
    /** NULL if the previous secret of the subscription is not used for signatures any more. */
    previous_sealed_secret: nullable(bytes),
  },
});

/**
 * Finds a subscription with a delivery whose next attempt is due. Reads one index entry for each subscription, because of the LIMIT.
 */
export const dueDeliveries = defineStatement({
  name: 'find_due_deliveries',
  text: `
    SELECT FROM event_subscriptions s CROSS JOIN LATERAL (
      SELECT FROM event_deliveries WHERE subscription_id = s.id AND status = 'pending' AND next_attempt_at <= now()
        AND (s.enabled OR event = 'ping') LIMIT 1
    ) d LIMIT 1`,
  row: {},
});

/** A delivery that this process claimed and attempts next. */
export type ClaimedDelivery = Readonly<RowOf<typeof claimDue>>;

export interface ClaimLimits {
  /** Ids of the keys with which this process decrypts secrets. */
  readonly vaultKeyIds: readonly string[];
  /** Number of attempts in progress in this process. */
  readonly underWay: Iterable<Pick<ClaimedDelivery, 'subscription_id' | 'team_id'>>;
  readonly perSubscription: number;
  readonly perTeam: number;
  readonly atMost: number;
}

/** Claims deliveries that are due, within the limits. The caller makes the attempts. */
export async function claimDeliveries(db: Queryable, limits: ClaimLimits): Promise<ClaimedDelivery[]> {
  const ofSubscription: Record<string, number> = {};
  const ofTeam: Record<string, number> = {};
  for (const { subscription_id, team_id } of limits.underWay) {
    ofSubscription[subscription_id] = (ofSubscription[subscription_id] ?? 0) + 1;
    ofTeam[team_id] = (ofTeam[team_id] ?? 0) + 1;
  }
  return await db.query(claimDue, [
    limits.vaultKeyIds,
    JSON.stringify(ofSubscription),
    limits.perSubscription,
    limits.atMost,
    JSON.stringify(ofTeam),
    limits.perTeam,
  ]);
}
