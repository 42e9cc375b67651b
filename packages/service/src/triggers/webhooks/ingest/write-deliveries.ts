/** Writes deliveries that passed all checks but that of their identity, and starts what they start. */
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import { makeDeliveryRows, type TakenDelivery } from './delivery-rows.ts';
import type { KnownWebhook } from './directory.ts';
import type { EventHeaders } from './event-headers.ts';
import type { Identity } from './identity.ts';
import { insertUnheld } from './insert-deliveries.ts';
import type { SignedBytes } from './same-bytes.ts';
import type { AcceptedDelivery, StartAutomations } from './start-automations.ts';
import { takeDeliveries } from './take-deliveries.ts';
import { explainRefusal } from './write-rejection.ts';

/** A delivery that passed all checks except that of its identity. */
export interface CheckedDelivery {
  readonly webhook: KnownWebhook;
  readonly id: string;
  readonly body: Buffer;
  readonly payload: unknown;
  readonly identity: Identity;
  /** Name of the event; null: no header has one. */
  readonly event: string | null;
  /** Stored beside the payload. */
  readonly headers: EventHeaders;
  readonly replayOf?: string;
  /** Hash of the signed bytes, where equal ones count as a duplicate for some time. Absent: they do not. */
  readonly sameBytes?: SignedBytes;
  /** True: the provider only checks the URL. */
  readonly startsNothing?: true;
  /** What a person has to do; for the log. */
  readonly reason?: string;
}

export type Written = { readonly kind: 'accepted' | 'duplicate' };

/** `changed`: the webhook has another version now. `full`: its budget is used up; `waitMs` until there is room again. */
export type NotWritten = { readonly kind: 'changed' } | { readonly kind: 'full'; readonly waitMs: number };

/** `held`: the delivery needs a transaction of its own, because it may start something or its webhook is locked. */
type Inserted = Written | NotWritten | { readonly kind: 'held' };

/** Writes deliveries in one statement, except those that may start something. */
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

/** Writes deliveries and starts the runs of the automations that they match, in the transaction of the caller. */
export async function writeWithin(
  tx: Transaction,
  startAutomations: StartAutomations | undefined,
  deliveries: readonly CheckedDelivery[],
): Promise<(Written | NotWritten)[]> {
  const candidates = deliveries.filter(({ startsNothing }) => !startsNothing).map(toAccepted);
  // Their statements are sent together, and the server runs them one after the other.
  const [kinds, startAccepted] = await Promise.all([
    takeDeliveries(tx, deliveries),
    candidates.length > 0 ? startAutomations?.(tx, candidates) : undefined,
  ]);
  const taken = deliveries.flatMap((delivery, index): TakenDelivery[] => {
    const kind = kinds[index];
    if (kind === 'ACCEPTED') return [{ delivery, label: kind, reason: delivery.reason ?? null }];
    return typeof kind === 'object' ? [{ delivery, ...kind }] : [];
  });
  const { rows, writeRest } = makeDeliveryRows(taken);
  const starting = taken.flatMap(({ delivery, label }) =>
    label === 'ACCEPTED' && !delivery.startsNothing ? [delivery] : [],
  );
  const reached = startAccepted && starting.length > 0 ? await startAccepted(starting.map(toAccepted), rows) : [];
  for (const [index, { webhook }] of starting.entries()) webhook.hints.feedsAutomations = reached[index] ?? false;
  writeRest(tx);
  const refusals = new Map<KnownWebhook, NotWritten>();
  for (const [index, { webhook }] of deliveries.entries())
    if (kinds[index] === 'full' && !refusals.has(webhook))
      refusals.set(webhook, await explainRefusal(tx, webhook, 'delivery'));
  return deliveries.map(({ webhook }, index) => {
    if (kinds[index] === 'ACCEPTED') return { kind: 'accepted' };
    if (typeof kinds[index] === 'object') return { kind: 'duplicate' };
    return (kinds[index] === 'full' ? refusals.get(webhook) : undefined) ?? { kind: 'changed' };
  });
}

const toAccepted = ({ webhook, id, body, payload, event }: CheckedDelivery): AcceptedDelivery => ({
  deliveryId: id,
  webhookUid: webhook.uid,
  webhookName: webhook.name,
  factoryUid: webhook.factoryUid,
  teamId: webhook.teamId,
  scheme: webhook.scheme,
  event,
  body,
  payload,
});
