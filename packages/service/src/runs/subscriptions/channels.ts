/**
 * Subscriptions whose events a channel delivers, such as comments on GitHub, instead of a request to a URL. They have the same outbox and
 * the same attempts, and no route shows them.
 */
import { randomUUIDv7 } from 'node:crypto';
import type { RunEventType } from '@runyard/contract/team/event-subscriptions';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';
import type { ClaimedDelivery } from './claim.ts';
import { deliveryChannel } from './enqueue.ts';
import { newSigningSecret, sealPurpose } from './secret.ts';
import type { SendOutcome } from './send.ts';

export type ChannelName = 'github';

/** The functions that deliver the events of channels. They must not throw for what GitHub or another service answers. */
export type Channels = Readonly<Record<ChannelName, (delivery: ClaimedDelivery) => Promise<SendOutcome>>>;

const events: readonly RunEventType[] = ['run.created', 'run.started', 'run.blocked', 'run.ended'];

const insert = defineStatement({
  name: 'insert_channel_subscription',
  text: `
    INSERT INTO event_subscriptions (id, team_id, url, channel, events, filter_metadata, vault_key_id, sealed_secret)
    VALUES ($1, $2, '', $3, $4, $5, $6, $7)`,
  row: {},
});

const remove = defineStatement({
  name: 'delete_channel_subscription',
  text: `
    WITH gone AS (DELETE FROM event_subscriptions WHERE id = $1 AND channel IS NOT NULL RETURNING id)
    DELETE FROM event_deliveries d USING gone WHERE d.subscription_id = gone.id`,
  row: {},
});

const enqueue = defineStatement({
  name: 'enqueue_notice_of_channel',
  text: `
    INSERT INTO event_deliveries (subscription_id, event, data) VALUES ($1, 'notice', $2)
    RETURNING id, '' AS ${deliveryChannel}`,
  row: { id: uuid },
});

/** Creates a subscription to the runs with this metadata that nobody's agent started. Returns its id. */
export async function createChannelSubscription(
  tx: Queryable,
  vault: Vault,
  of: { readonly teamId: string; readonly channel: ChannelName; readonly metadata: Readonly<Record<string, string>> },
): Promise<string> {
  const id = randomUUIDv7();
  const secret = vault.seal(sealPurpose(id), newSigningSecret());
  const { teamId, channel, metadata } = of;
  await tx.query(insert, [id, teamId, channel, events, JSON.stringify(metadata), vault.keyId, secret]);
  return id;
}

export async function deleteChannelSubscription(tx: Queryable, id: string): Promise<void> {
  await tx.query(remove, [id]);
}

/** Enqueues a text for the channel, in the transaction that decides to send it. */
export async function enqueueNotice(
  tx: Queryable,
  subscriptionId: string,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  await tx.query(enqueue, [subscriptionId, JSON.stringify(data)]);
}

/** A delivery that no deliverer has begun yet will show the newest plan too. So a plan that changes often causes few deliveries. */
const enqueueProgressOf = defineStatement({
  name: 'enqueue_progress_of_channels',
  text: `
    INSERT INTO event_deliveries (subscription_id, event, data, next_attempt_at)
    SELECT s.id, 'notice', jsonb_build_object('run_id', r.id), clock_timestamp() + interval '10 seconds'
    FROM runs r JOIN event_subscriptions s ON s.team_id = r.team_id AND s.enabled AND s.channel IS NOT NULL AND r.metadata @> s.filter_metadata
    WHERE r.id = $1 AND r.parent_run_id IS NULL AND NOT EXISTS (
      SELECT FROM event_deliveries d WHERE d.subscription_id = s.id AND d.status = 'pending' AND d.leased_until IS NULL
        AND d.data->>'run_id' = r.id::text)`,
  row: {},
});

/** Enqueues an update for the channels that follow a run, in the transaction that stores what the run shows. */
export const enqueueProgress = async (tx: Queryable, runId: string): Promise<void> => {
  await tx.query(enqueueProgressOf, [runId]);
};
