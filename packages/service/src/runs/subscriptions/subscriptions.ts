import { createHash, randomUUIDv7 } from 'node:crypto';
import { maxSubscriptions } from '@runyard/contract/limits';
import type { RunSourceType } from '@runyard/contract/runs/states';
import type {
  CreateEventSubscriptionRequest,
  EventSubscription,
  RunEventType,
  SubscriptionFilter,
  UpdateEventSubscriptionRequest,
} from '@runyard/contract/team/event-subscriptions';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { readsOfTeam } from '../../platform/store/database/rows-of-team.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange, type State } from '../../team/access/audit/record.ts';
import { teamHasRoom } from '../../team/access/teams/has-room.ts';
import { newSigningSecret, sealPurpose } from './secret.ts';

const row = {
  id: uuid,
  name: nullable(text()),
  url: text(),
  events: texts,
  filter_source: nullable(text<RunSourceType>()),
  filter_name: nullable(text()),
  filter_metadata: json<Record<string, string>>(),
  enabled: boolean,
  disabled_reason: nullable(text()),
  disabled_at: nullable(timestamp),
  failing_since: nullable(timestamp),
  created_at: timestamp,
  updated_at: timestamp,
};

const { columns, readAll, readOne } = readsOfTeam('event_subscriptions', row, 'channel IS NULL');

const lockOne = defineStatement({
  name: 'lock_event_subscription',
  text: `SELECT ${columns} FROM event_subscriptions WHERE team_id = $1 AND id = $2 AND channel IS NULL FOR UPDATE`,
  row,
});

const insert = defineStatement({
  name: 'insert_event_subscription',
  text: `
    INSERT INTO event_subscriptions
      (id, team_id, name, url, events, filter_source, filter_name, filter_metadata, enabled, vault_key_id, sealed_secret)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING ${columns}`,
  row,
});

/** $9: true if the caller sets `enabled`. $10: true if earlier failures do not count any more. */
const update = defineStatement({
  name: 'update_event_subscription',
  text: `
    UPDATE event_subscriptions SET name = $2, url = $3, events = $4, filter_source = $5, filter_name = $6, filter_metadata = $7,
      enabled = $8, updated_at = clock_timestamp(),
      disabled_reason = CASE WHEN $9 THEN NULL ELSE disabled_reason END,
      disabled_at = CASE WHEN $9 THEN NULL ELSE disabled_at END,
      failing_since = CASE WHEN $10 THEN NULL ELSE failing_since END
    WHERE id = $1 RETURNING ${columns}`,
  row,
});

/**
 * A secret that was encrypted with a key that this process does not have cannot be used to sign, so it is not stored as the previous
 * secret.
 */
const rotate = defineStatement({
  name: 'rotate_secret_of_event_subscription',
  text: `
    UPDATE event_subscriptions SET
      previous_sealed_secret = CASE WHEN vault_key_id = ANY($5::text[]) THEN sealed_secret END,
      previous_secret_until = clock_timestamp() + interval '24 hours',
      vault_key_id = $3, sealed_secret = $4, updated_at = clock_timestamp()
    WHERE team_id = $1 AND id = $2 AND channel IS NULL RETURNING ${columns}`,
  row,
});

const remove = defineStatement({
  name: 'delete_event_subscription',
  text: `
    WITH gone AS (DELETE FROM event_subscriptions WHERE team_id = $1 AND id = $2 AND channel IS NULL RETURNING id, name),
      log AS (DELETE FROM event_deliveries d USING gone WHERE d.subscription_id = gone.id)
    SELECT name FROM gone`,
  row: { name: nullable(text()) },
});

type SubscriptionRow = RowOf<typeof readOne>;

function filterOf(row: SubscriptionRow): SubscriptionFilter | undefined {
  const filter: SubscriptionFilter = {
    ...(row.filter_source === null ? {} : { source: row.filter_source }),
    ...(row.filter_name === null ? {} : { name: row.filter_name }),
    ...(Object.keys(row.filter_metadata).length === 0 ? {} : { metadata: row.filter_metadata }),
  };
  return Object.keys(filter).length === 0 ? undefined : filter;
}

function toSubscription(row: SubscriptionRow): EventSubscription {
  const filter = filterOf(row);
  return {
    id: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    url: row.url,
    // The schema of requests allows only events of this type.
    events: row.events as RunEventType[],
    ...(filter ? { filter } : {}),
    enabled: row.enabled,
    ...(row.disabled_reason === null ? {} : { disabled_reason: row.disabled_reason }),
    ...(row.disabled_at === null ? {} : { disabled_at: row.disabled_at }),
    ...(row.failing_since === null ? {} : { failing_since: row.failing_since }),
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
}

/** Returns the subscriptions of the team, oldest first. */
export async function listSubscriptions(db: Queryable, teamId: string): Promise<EventSubscription[]> {
  const rows = await db.query(readAll, [teamId]);
  return rows.map(toSubscription);
}

/** Returns a subscription; null if the team has none with this id. */
export async function readSubscription(db: Queryable, teamId: string, id: string): Promise<EventSubscription | null> {
  const [row] = await db.query(readOne, [teamId, id]);
  return row ? toSubscription(row) : null;
}

/** A subscription with its encrypted secret, which `openSecret` decrypts. */
export interface SealedSubscription {
  readonly subscription: EventSubscription;
  /** Base64 */
  readonly sealedSecret: string;
}

/** Returns the signing secret in the form that the receiver gets. */
export const openSecret = (vault: Vault, { subscription, sealedSecret }: SealedSubscription): string =>
  vault.open(sealPurpose(subscription.id), Buffer.from(sealedSecret, 'base64'));

/**
 * Returns a subscription as the audit log shows it. The result has only the origin of the URL, because the rest of the URL may contain a
 * secret.
 */
const stateOf = ({ name, url, events, filter, enabled }: EventSubscription): State => ({
  name,
  url_origin: URL.parse(url)?.origin,
  url_sha256: createHash('sha256').update(url).digest('hex').slice(0, 16),
  events,
  filter,
  enabled,
});

const subjectOf = ({ id, name }: EventSubscription) => ({ type: 'event_subscription', uid: id, name });

/** Creates a subscription with a new secret. `too_many`: the team already has the maximum number of subscriptions. */
export async function createSubscription(
  tx: Queryable,
  vault: Vault,
  teamId: string,
  request: CreateEventSubscriptionRequest,
  by?: Author,
): Promise<SealedSubscription | 'too_many'> {
  if (!(await teamHasRoom(tx, { teamId, creator: by?.creator ?? null }, 'event_subscriptions', maxSubscriptions)))
    return 'too_many';
  const id = randomUUIDv7();
  const sealed = vault.seal(sealPurpose(id), newSigningSecret());
  const { filter = {} } = request;
  const [row] = await tx.query(insert, [
    id,
    teamId,
    request.name ?? null,
    request.url,
    request.events,
    filter.source ?? null,
    filter.name ?? null,
    JSON.stringify(filter.metadata ?? {}),
    request.enabled,
    vault.keyId,
    sealed,
  ]);
  if (!row) throw new Error('the subscription was not inserted');
  const made = toSubscription(row);
  const change = { action: 'event_subscription.create', subject: subjectOf(made), after: stateOf(made) } as const;
  if (by) await recordChange(tx, by, change);
  return { subscription: made, sealedSecret: sealed.toString('base64') };
}

/** Changes the fields that the request contains. Returns null if the team has no such subscription. */
export async function updateSubscription(
  db: Database,
  teamId: string,
  id: string,
  request: UpdateEventSubscriptionRequest,
  by?: Author,
): Promise<EventSubscription | null> {
  return await db.transaction(async (tx) => {
    const [old] = await tx.query(lockOne, [teamId, id]);
    if (!old) return null;
    const filter = (request.filter === undefined ? filterOf(old) : request.filter) ?? {};
    const url = request.url ?? old.url;
    const [row] = await tx.query(update, [
      id,
      request.name === undefined ? old.name : request.name,
      url,
      request.events ?? old.events,
      filter.source ?? null,
      filter.name ?? null,
      JSON.stringify(filter.metadata ?? {}),
      request.enabled ?? old.enabled,
      request.enabled !== undefined,
      request.enabled === true || url !== old.url,
    ]);
    if (!row) return null;
    const [before, after] = [toSubscription(old), toSubscription(row)];
    const subject = subjectOf(after);
    if (by)
      await recordChange(tx, by, {
        action: 'event_subscription.update',
        subject,
        before: stateOf(before),
        after: stateOf(after),
        ...(before.enabled && !after.enabled ? { endsAccess: true } : {}),
      });
    return after;
  });
}

/** Sets a new secret; the previous one also signs for 24 h. Returns null if the team has no such subscription. */
export async function rotateSecret(
  db: Database,
  vault: Vault,
  teamId: string,
  id: string,
  by?: Author,
): Promise<SealedSubscription | null> {
  const { keyId, keyIds } = vault;
  const sealed = vault.seal(sealPurpose(id), newSigningSecret());
  return await db.transaction(async (tx) => {
    const [row] = await tx.query(rotate, [teamId, id, keyId, sealed, keyIds]);
    if (!row) return null;
    const subscription = toSubscription(row);
    const change = { action: 'event_subscription.rotate_secret', subject: subjectOf(subscription) } as const;
    if (by) await recordChange(tx, by, change);
    return { subscription, sealedSecret: sealed.toString('base64') };
  });
}

/** Deletes a subscription with its deliveries. Returns false if the team has no such subscription. */
export async function deleteSubscription(db: Database, teamId: string, id: string, by?: Author): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(remove, [teamId, id]);
    if (!gone) return false;
    const subject = { type: 'event_subscription', uid: id, name: gone.name };
    const change = { action: 'event_subscription.delete', subject, endsAccess: true } as const;
    if (by) await recordChange(tx, by, change);
    return true;
  });
}
