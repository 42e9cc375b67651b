import type {
  DeliveredEventType,
  DeliveryAttempt,
  DeliveryStatus,
  EventDelivery,
  ListDeliveriesQuery,
  ListEventDeliveriesResponse,
} from '@runyard/contract/team/event-subscriptions';
import { type CursorSigner, positionOfId, readPage } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { greatestUuid } from '../../platform/store/database/uuid.ts';
import { deliveryChannel } from './enqueue.ts';

const row = {
  id: uuid,
  event: text<DeliveredEventType>(),
  run_id: nullable(text()),
  status: text<DeliveryStatus>(),
  occurred_at: timestamp,
  next_attempt_at: timestamp,
  delivered_at: nullable(timestamp),
};

const columns = `id, event, data->>'run_id' AS run_id, status, occurred_at, next_attempt_at, delivered_at`;

const readDeliveries = defineStatement({
  name: 'read_event_deliveries',
  text: `
    SELECT ${columns} FROM event_deliveries
    WHERE subscription_id = $1 AND id < $2 AND ($3::text IS NULL OR status = $3) ORDER BY id DESC LIMIT $4`,
  row,
});

const insertPing = defineStatement({
  name: 'insert_ping',
  text: `
    INSERT INTO event_deliveries (subscription_id, event, data, retry_until)
    VALUES ($1, 'ping', '{}', clock_timestamp()) RETURNING ${columns}, '' AS ${deliveryChannel}`,
  row,
});

const readCanSend = defineStatement({
  name: 'read_whether_delivery_can_be_sent',
  text: `
    SELECT s.enabled OR d.event = 'ping' AS can_send
    FROM event_deliveries d JOIN event_subscriptions s ON s.id = d.subscription_id WHERE d.subscription_id = $1 AND d.id = $2`,
  row: { can_send: boolean },
});

const makeDue = defineStatement({
  name: 'make_delivery_due',
  text: `
    UPDATE event_deliveries SET status = 'pending', unsigned_since = NULL, round_attempts = 0, delivered_at = NULL, next_attempt_at = clock_timestamp(),
      retry_until = CASE WHEN event = 'ping' THEN clock_timestamp() END
    WHERE id = $1 AND NOT coalesce(leased_until > clock_timestamp(), false)
    RETURNING ${columns}, '' AS ${deliveryChannel}`,
  row,
});

const readAttempts = defineStatement({
  name: 'read_delivery_attempts',
  text: `
    SELECT delivery_id, number, started_at, duration_ms, http_status, error
    FROM event_delivery_attempts WHERE delivery_id = ANY ($1::uuid[]) ORDER BY number`,
  row: {
    delivery_id: uuid,
    number: integer,
    started_at: timestamp,
    duration_ms: integer,
    http_status: nullable(integer),
    error: nullable(text()),
  },
});

type DeliveryRow = RowOf<typeof readDeliveries>;
type AttemptRow = RowOf<typeof readAttempts>;

const toAttempt = (row: AttemptRow): DeliveryAttempt => ({
  number: row.number,
  started_at: row.started_at,
  duration_ms: row.duration_ms,
  ...(row.http_status === null ? {} : { status: row.http_status }),
  ...(row.error === null ? {} : { error: row.error }),
});

async function withAttempts(db: Queryable, rows: readonly DeliveryRow[]): Promise<EventDelivery[]> {
  const attempts = await db.query(readAttempts, [rows.map(({ id }) => id)]);
  return rows.map((row) => ({
    id: row.id,
    event: row.event,
    ...(row.run_id === null ? {} : { run_id: row.run_id }),
    status: row.status,
    occurred_at: row.occurred_at,
    ...(row.status === 'pending' ? { next_attempt_at: row.next_attempt_at } : {}),
    ...(row.delivered_at === null ? {} : { delivered_at: row.delivered_at }),
    attempts: attempts.filter(({ delivery_id }) => delivery_id === row.id).map(toAttempt),
  }));
}

/** Returns one page of deliveries, newest first. Returns null if the cursor was made for another list. */
export async function listDeliveries(
  db: Queryable,
  signer: CursorSigner,
  subscriptionId: string,
  query: ListDeliveriesQuery,
): Promise<ListEventDeliveriesResponse | null> {
  const { status = null } = query;
  const found = await readPage(signer, query, {
    list: ['event deliveries', subscriptionId, status],
    read: (after, count) => db.query(readDeliveries, [subscriptionId, after?.id ?? greatestUuid, status, count]),
    positionOf: positionOfId,
  });
  return found && { deliveries: await withAttempts(db, found.page), page_info: found.page_info };
}

/** Enqueues a ping. The ping is sent once, even if the subscription is disabled. */
export async function enqueuePing(db: Queryable, subscriptionId: string): Promise<EventDelivery> {
  const [row] = await db.query(insertPing, [subscriptionId]);
  if (!row) throw new Error('the ping was not inserted');
  const [ping] = await withAttempts(db, [row]);
  if (!ping) throw new Error('the ping was not read');
  return ping;
}

/** `disabled`, `under_way`: 409; `not_found`: 404. */
export type RedeliverOutcome =
  | { readonly kind: 'pending'; readonly delivery: EventDelivery }
  | { readonly kind: 'disabled' | 'under_way' | 'not_found' };

/** Makes a delivery due at once, in any state of the delivery. If the attempt fails, retries for 24 h follow again. */
export async function redeliver(db: Queryable, subscriptionId: string, deliveryId: string): Promise<RedeliverOutcome> {
  const [found] = await db.query(readCanSend, [subscriptionId, deliveryId]);
  if (!found) return { kind: 'not_found' };
  if (!found.can_send) return { kind: 'disabled' };
  const [row] = await db.query(makeDue, [deliveryId]);
  if (!row) return { kind: 'under_way' };
  const [delivery] = await withAttempts(db, [row]);
  return delivery ? { kind: 'pending', delivery } : { kind: 'not_found' };
}
