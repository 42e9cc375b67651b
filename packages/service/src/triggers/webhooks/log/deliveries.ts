/** Reads the deliveries in the log of a webhook, and records later outcomes. */
import type {
  AutomationOutcome,
  ListWebhookDeliveriesQuery,
  ListWebhookDeliveriesResponse,
  SignatureSchemeName,
  WebhookDelivery,
  WebhookDeliveryLabel,
} from '@runyard/contract/webhooks/webhooks';
import { type CursorSigner, positionOfId, readPage } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { greatestUuid } from '../../../platform/store/database/uuid.ts';
import type { EventHeaders } from '../ingest/read-request.ts';
import type { EventSender } from '../ingest/sender.ts';
import { tellFollowers } from '../ingest/tell-followers.ts';

/** The columns of a delivery that a list shows. */
export const deliveryRow = {
  id: uuid,
  label: text<WebhookDeliveryLabel>(),
  size_bytes: integer,
  identity: nullable(text()),
  replay_of: nullable(uuid),
  runs: texts,
  outcomes: json<AutomationOutcome[]>(),
  provider_event: nullable(text()),
  reason: nullable(text()),
  received_at: timestamp,
};

const columns = Object.keys(deliveryRow).join(', ');

/** SQL of the columns of a delivery `d`. The outcomes have no `checks`, because these would make pages large. */
export const deliveryColumns = Object.keys(deliveryRow)
  .map((name) =>
    name === 'outcomes'
      ? `(SELECT coalesce(jsonb_agg(o - 'checks'), '[]') FROM jsonb_array_elements(d.outcomes) o) AS outcomes`
      : `d.${name}`,
  )
  .join(', ');

const readDeliveries = defineStatement({
  name: 'read_webhook_deliveries',
  text: `
    SELECT ${deliveryColumns} FROM webhook_deliveries d
    WHERE webhook_uid = $1 AND id < $2 AND ($3::text IS NULL OR label = $3) ORDER BY id DESC LIMIT $4`,
  row: deliveryRow,
});

const readOne = defineStatement({
  name: 'read_webhook_delivery',
  text: `SELECT ${columns}, payload, headers, sender FROM webhook_deliveries WHERE webhook_uid = $1 AND id = $2`,
  row: {
    ...deliveryRow,
    payload: nullable(bytes),
    headers: nullable(json<EventHeaders>()),
    sender: nullable(json<EventSender>()),
  },
});

const readPayload = defineStatement({
  name: 'read_payload_of_factory_delivery',
  text: `
    SELECT d.webhook_uid, w.signature_scheme, d.payload, d.provider_event FROM webhook_deliveries d JOIN webhooks w ON w.uid = d.webhook_uid
    WHERE d.id = $3 AND w.team_id = $1 AND w.factory_uid = $2 AND d.payload IS NOT NULL`,
  row: {
    webhook_uid: text(),
    signature_scheme: nullable(text<SignatureSchemeName>()),
    payload: nullable(bytes),
    provider_event: nullable(text()),
  },
});

export const toDelivery = (found: RowOf<typeof readDeliveries>): WebhookDelivery => ({
  delivery_id: found.id,
  label: found.label,
  size_bytes: found.size_bytes,
  received_at: found.received_at,
  ...(found.identity === null ? {} : { identity: found.identity }),
  ...(found.provider_event === null ? {} : { event: found.provider_event }),
  ...(found.reason === null ? {} : { reason: found.reason }),
  ...(found.replay_of === null ? {} : { replay_of: found.replay_of }),
  ...(found.runs.length === 0 ? {} : { runs: found.runs }),
  ...(found.outcomes.length === 0 ? {} : { automations: found.outcomes }),
});

/** Only this many of the newest deliveries are searched for payloads. */
const maxLookedAt = 5_000;

/** Returns one page of the log of a webhook, newest delivery first. Returns null if the cursor was made for another list. */
export async function listWebhookDeliveries(
  db: Queryable,
  signer: CursorSigner,
  webhookUid: string,
  query: ListWebhookDeliveriesQuery,
): Promise<ListWebhookDeliveriesResponse | null> {
  const { label = null } = query;
  const found = await readPage(signer, query, {
    list: ['webhook deliveries', webhookUid, label],
    read: (after, count) => db.query(readDeliveries, [webhookUid, after?.id ?? greatestUuid, label, count]),
    positionOf: positionOfId,
  });
  return found && { deliveries: found.page.map(toDelivery), page_info: found.page_info };
}

/** A delivery with its payload. `payload`: null if the delivery was not accepted or its payload is no longer stored. */
export interface StoredDelivery {
  readonly delivery: WebhookDelivery;
  readonly payload: Buffer | null;
  /** The name that the provider gave the event. */
  readonly event: string | null;
  readonly headers: EventHeaders;
  /** Absent: the delivery does not come from a GitHub App. */
  readonly sender?: EventSender;
}

/** Returns a delivery; null if the log of the webhook has no delivery with this id. */
export async function readWebhookDelivery(
  db: Queryable,
  webhookUid: string,
  deliveryId: string,
): Promise<StoredDelivery | null> {
  const [found] = await db.query(readOne, [webhookUid, deliveryId]);
  if (!found) return null;
  const { payload, provider_event: event, headers, sender } = found;
  return { delivery: toDelivery(found), payload, event, headers: headers ?? {}, ...(sender ? { sender } : {}) };
}

/** The payload of a delivery, and the webhook that received it. */
export interface StoredPayload {
  readonly webhookUid: string;
  readonly scheme?: SignatureSchemeName | null;
  readonly bytes: Buffer;
  readonly event: string | null;
}

/**
 * Returns the payload of a delivery to any webhook of the factory. Returns null if there is no delivery with this id, or its payload is not stored.
 */
export async function readPayloadOfDelivery(
  db: Queryable,
  teamId: string,
  factoryUid: string,
  deliveryId: string,
): Promise<StoredPayload | null> {
  const [found] = await db.query(readPayload, [teamId, factoryUid, deliveryId]);
  if (!found?.payload) return null;
  const { webhook_uid: webhookUid, signature_scheme: scheme, payload, provider_event: event } = found;
  return { webhookUid, scheme, bytes: payload, event };
}

/**
 * Reads the newest stored payloads of a webhook: at most $2, with at most $3 bytes together. Searches only the newest deliveries,
 * because there may be very many rejected deliveries between those with a payload.
 */
const readLast = defineStatement({
  name: 'read_last_payloads_of_webhook',
  text: `
    SELECT id, received_at, provider_event, payload FROM (
      SELECT *, sum(octet_length(payload)) OVER (ORDER BY id DESC) AS up_to_here FROM (
        SELECT id, received_at, provider_event, payload FROM (
          SELECT * FROM webhook_deliveries WHERE webhook_uid = $1 ORDER BY id DESC LIMIT ${maxLookedAt}) newest
        WHERE label = 'ACCEPTED' AND payload IS NOT NULL ORDER BY id DESC LIMIT $2) stored) summed
    WHERE up_to_here <= $3 ORDER BY id DESC`,
  row: { id: uuid, received_at: timestamp, provider_event: nullable(text()), payload: bytes },
});

export type PayloadInLog = RowOf<typeof readLast>;

/** Returns the newest stored payloads of a webhook, newest first: at most `count` payloads, with at most `maxBytes` together. */
export const readLastPayloads = (
  db: Queryable,
  webhookUid: string,
  { count, maxBytes }: { readonly count: number; readonly maxBytes: number },
): Promise<PayloadInLog[]> => db.query(readLast, [webhookUid, count, maxBytes]);

/** In a delivery of the log, replaces the outcome for one automation and adds the id of the run that the automation started. */
const noteLater = defineStatement({
  name: 'note_later_outcome_of_webhook_delivery',
  text: `
    UPDATE webhook_deliveries SET
      runs = CASE WHEN $3::text IS NULL THEN runs ELSE array_append(runs, $3::text) END,
      outcomes = (SELECT coalesce(jsonb_agg(CASE WHEN o ->> 'automation_id' = $2 THEN $4::jsonb ELSE o END), '[]')
        FROM jsonb_array_elements(outcomes) o)
    WHERE id = $1 RETURNING ${tellFollowers}`,
  row: {},
});

/** Records in the log the final outcome of a delivery that had to wait for an automation. */
export async function noteLaterOutcome(tx: Queryable, deliveryId: string, outcome: AutomationOutcome): Promise<void> {
  const { automation_id: automation, run_id: runId = null } = outcome;
  await tx.query(noteLater, [deliveryId, automation, runId, JSON.stringify(outcome)]);
}
