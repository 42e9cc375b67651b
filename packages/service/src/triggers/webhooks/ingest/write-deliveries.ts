/** Writes deliveries that start no run. They have passed all checks except the check for duplicates, which this file does. */

import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, float, nullable, text } from '../../../platform/store/database/statement.ts';
import type { KnownWebhook } from './directory.ts';
import type { EventHeaders, Identity } from './read-request.ts';
import { tellFollowers } from './tell-followers.ts';

/** The hash of a delivery's signed bytes. Another delivery with the same hash within `windowSeconds` seconds is a duplicate. */
export interface SignedBytes {
  /** SHA-256 */
  readonly hash: Buffer;
  readonly windowSeconds: number;
}

/** Returns the reason for treating a delivery as a duplicate because an earlier delivery had the same signed bytes. */
export const explainSameBytes = (earlierId: string, windowSeconds: number | string): string =>
  `the delivery ${earlierId} had the same signed bytes. The signature does not cover the id, so equal bytes count once in ${windowSeconds} s (duplicate_window_seconds)`;

/** Returns SQL for the text of `explainSameBytes`. The arguments are SQL expressions. */
const explainSameBytesSql = (earlierId: string, windowSeconds: string): string =>
  explainSameBytes(`' || ${earlierId} || '`, `' || ${windowSeconds} || '`).replace(/^/, "'").replace(/$/, "'");

/**
 * Returns SQL for the id of the webhook's last accepted delivery within the window that had the same signed bytes; NULL if there is no
 * such delivery. `i`: a row with the columns webhook_uid, signed_hash and window_seconds.
 */
export const findSameBytes = (i: string): string => `(
  SELECT d.id FROM webhook_deliveries d WHERE d.webhook_uid = ${i}.webhook_uid AND d.signed_hash = ${i}.signed_hash AND d.label = 'ACCEPTED'
    AND d.received_at > clock_timestamp() - make_interval(secs => ${i}.window_seconds) ORDER BY d.id DESC LIMIT 1)`;

const perMinute = maxWebhookDeliveriesPerMinute;

/**
 * Returns an SQL condition: a trigger of the automation `a` selects a webhook. `isGithub`: an SQL condition which is true if the
 * webhook has the signature scheme of GitHub.
 */
export const selectsWebhook = (webhookUid: string, isGithub: string): string => `
  EXISTS (SELECT FROM jsonb_array_elements(a.triggers) t WHERE
    t ->> 'provider' = 'webhook' AND (t -> 'filter' -> 'webhook_ids' ? ${webhookUid} OR t -> 'filter' -> 'webhook_ids' -> 'in' ? ${webhookUid})
    OR t ->> 'provider' = 'github' AND ${isGithub})`;

/**
 * `HELD`: the delivery was not written, because an automation selects its webhook, another transaction has locked the webhook, the
 * webhook was deleted, or the delivery reports a push and the factory has a source. `CHANGED`: the webhook has another version now.
 * `FULL`: the budget of the webhook is used up.
 */
type InsertOutcome = 'ACCEPTED' | 'DUPLICATE' | 'HELD' | 'CHANGED' | 'FULL';

/**
 * Checks and writes deliveries that start nothing, in one statement, which is its own transaction. Returns one row for each delivery,
 * in their order. The statement locks the rows of the webhooks in the order of their UIDs, so no other transaction uses the budgets of
 * these webhooks meanwhile. $2: the versions with which the deliveries were authenticated. A delivery is refused if its webhook now
 * has another version. So no delivery is accepted with an old secret or for a disabled webhook, even if this process missed the notice
 * of the change. A partial unique index decides which of several deliveries with the same identity is accepted. Deliveries that may
 * start a run are written only if they are duplicates. Deliveries of a webhook that another transaction has locked are not written,
 * because that transaction may take long to create runs. The subqueries of $1 hide the length of the arrays. Without them, PostgreSQL
 * makes a new plan for each batch of fewer than ten deliveries, because it expects such plans to be cheaper.
 */
const insertUnheld = defineStatement({
  name: 'insert_webhook_deliveries_that_start_nothing',
  text: `
    WITH input AS (
      SELECT * FROM unnest((SELECT $1::text[]), $2::integer[], $3::uuid[], $4::bigint[], $5::text[], $6::bytea[], $7::uuid[], $8::bytea[],
          $9::text[], $10::boolean[], $11::jsonb[], $12::bytea[], $13::integer[], $14::text[]) WITH ORDINALITY
        AS i (webhook_uid, version, id, size_bytes, identity, identity_hash, replay_of, payload, event, starts_nothing, headers, signed_hash,
          window_seconds, reason, n)
    ), locked AS (
      SELECT uid, factory_uid, team_id, signature_scheme, enabled, version, recent FROM webhooks WHERE uid = ANY ((SELECT $1::text[])::text[])
      ORDER BY uid FOR NO KEY UPDATE SKIP LOCKED
    ), webhook AS (
      SELECT *, (SELECT count(*) FROM unnest(recent) t WHERE t > clock_timestamp() - interval '1 minute') AS used,
        (SELECT true FROM automations a WHERE a.factory_uid = locked.factory_uid
          AND ${selectsWebhook('locked.uid', "locked.signature_scheme = 'github'")} LIMIT 1) IS TRUE AS feeds,
        signature_scheme = 'github' AND EXISTS (SELECT FROM factory_sources s WHERE s.factory_uid = locked.factory_uid) AS has_source
      FROM locked
    ), compared AS (
      SELECT input.*, ${findSameBytes('input')} AS same_bytes FROM input
    ), checked AS (
      SELECT i.*, w.team_id, w.recent, w.used, w.enabled AND w.version = i.version AS is_current, w.uid IS NULL AS is_missing,
        (w.feeds OR w.has_source AND i.event = 'push') AND NOT i.starts_nothing AND (SELECT true FROM webhook_deliveries d WHERE d.webhook_uid = i.webhook_uid
          AND d.identity_hash = i.identity_hash AND d.label = 'ACCEPTED' LIMIT 1) IS NOT TRUE AND i.same_bytes IS NULL AS is_held
      FROM compared i LEFT JOIN webhook w ON w.uid = i.webhook_uid
    ), placed AS (
      SELECT *, is_current AND NOT is_held
        AND row_number() OVER (PARTITION BY webhook_uid, is_current AND NOT is_held ORDER BY n) <= ${perMinute} - used AS is_taken,
        coalesce(same_bytes, CASE WHEN signed_hash IS NOT NULL THEN
          nullif(first_value(id) OVER (PARTITION BY webhook_uid, signed_hash, is_current AND NOT is_held ORDER BY n), id) END) AS earlier
      FROM checked
    ), budget AS (
      SELECT webhook_uid, sum(size_bytes) AS bytes, recent || array_fill(clock_timestamp(), ARRAY[count(*)::integer]) AS recent
      FROM placed WHERE is_taken GROUP BY webhook_uid, recent
    ), counted AS (
      UPDATE webhooks w SET recent = b.recent[greatest(1, cardinality(b.recent) - ${perMinute - 1}):],
        payload_bytes = w.payload_bytes + b.bytes
      FROM budget b WHERE w.uid = b.webhook_uid
    ), accepted AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, identity, identity_hash, replay_of, payload, provider_event,
        headers, signed_hash, reason)
      SELECT id, webhook_uid, team_id, 'ACCEPTED', size_bytes, identity, identity_hash, replay_of, payload, event, headers, signed_hash, reason FROM placed
      WHERE is_taken AND earlier IS NULL ORDER BY n
      ON CONFLICT (webhook_uid, identity_hash) WHERE label = 'ACCEPTED' DO NOTHING RETURNING id
    ), duplicate AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, identity, identity_hash, replay_of, provider_event, reason)
      SELECT id, webhook_uid, team_id, 'DUPLICATE', size_bytes, identity, identity_hash, replay_of, event,
        ${explainSameBytesSql('earlier', 'window_seconds')} FROM placed p
      WHERE is_taken AND NOT EXISTS (SELECT FROM accepted a WHERE a.id = p.id)
    )
    SELECT CASE WHEN a.id IS NOT NULL THEN 'ACCEPTED' WHEN p.is_taken THEN 'DUPLICATE' WHEN p.is_missing THEN 'HELD' WHEN p.is_current IS NOT TRUE THEN 'CHANGED'
        WHEN p.is_held THEN 'HELD' ELSE 'FULL' END AS outcome,
      extract(epoch FROM (SELECT r.recent[cardinality(r.recent) - ${perMinute - 1}] FROM (SELECT coalesce(b.recent, p.recent) AS recent) r)
        + interval '1 minute' - clock_timestamp())::float8 * 1000 AS wait_ms, ${tellFollowers}
    FROM placed p LEFT JOIN accepted a ON a.id = p.id LEFT JOIN budget b ON b.webhook_uid = p.webhook_uid
    ORDER BY p.n`,
  row: { outcome: text<InsertOutcome>(), wait_ms: nullable(float) },
});

/** A delivery that has passed all checks except the check for duplicates. */
export interface CheckedDelivery {
  readonly webhook: KnownWebhook;
  readonly id: string;
  readonly body: Buffer;
  readonly payload: unknown;
  readonly identity: Identity;
  /** Name of the event; null: no header names the event. */
  readonly event: string | null;
  /** The headers that are stored with the payload. */
  readonly headers: EventHeaders;
  readonly replayOf?: string;
  /** Set if another delivery with the same signed bytes is a duplicate for some time. Absent: only the identity shows duplicates. */
  readonly sameBytes?: SignedBytes;
  /** True: the request is a check of the URL by the provider, so it starts no run. */
  readonly startsNothing?: true;
  /** Advice to a person, which the log shows. */
  readonly reason?: string;
}

export type Written = { readonly kind: 'accepted' | 'duplicate' };

/**
 * `changed`: the webhook has another version now. `full`: the budget of the webhook is used up. `waitMs`: the time until the budget
 * allows a delivery again.
 */
export type NotWritten = { readonly kind: 'changed' } | { readonly kind: 'full'; readonly waitMs: number };

/** `held`: the delivery was not written. The delivery needs another transaction, because it may start a run or its webhook is locked. */
type Inserted = Written | NotWritten | { readonly kind: 'held' };

/** Writes deliveries with one statement. Does not write deliveries that may start a run. */
export async function insertAll(db: Queryable, deliveries: readonly CheckedDelivery[]): Promise<Inserted[]> {
  const column = <T>(of: (delivery: CheckedDelivery) => T): T[] => deliveries.map(of);
  const rows = await db.query(insertUnheld, [
    column(({ webhook }) => webhook.uid),
    column(({ webhook }) => webhook.version),
    column(({ id }) => id),
    column(({ body }) => body.length),
    column(({ identity }) => identity.text),
    bytesArray(column(({ identity }) => identity.hash)),
    column(({ replayOf = null }) => replayOf),
    bytesArray(column(({ body }) => body)),
    column(({ event }) => event),
    column(({ startsNothing = false }) => startsNothing),
    column(({ headers }) => JSON.stringify(headers)),
    bytesArray(column(({ sameBytes }) => sameBytes?.hash ?? null)),
    column(({ sameBytes }) => sameBytes?.windowSeconds ?? 0),
    column(({ reason = null }) => reason),
  ]);
  return deliveries.map(({ webhook }, index): Inserted => {
    const row = rows[index];
    switch (row?.outcome) {
      case 'ACCEPTED':
        return { kind: 'accepted' };
      case 'DUPLICATE':
        return { kind: 'duplicate' };
      case 'HELD':
        webhook.hints.feedsAutomations = true;
        return { kind: 'held' };
      case 'FULL': {
        const waitMs = Math.max(row.wait_ms ?? 0, 1);
        webhook.fullUntil.deliveries = performance.now() + waitMs;
        return { kind: 'full', waitMs };
      }
      default:
        return { kind: 'changed' };
    }
  });
}
