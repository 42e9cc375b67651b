/** Writes deliveries that passed all checks but that of their identity, and starts what they start. */
import type { Queryable } from '../../store/database/database.ts';
import type { KnownWebhook } from './directory.ts';
import type { Identity } from './identity.ts';
import { insertEach, insertUnheld } from './insert-deliveries.ts';
import type { KeptHeaders } from './kept-headers.ts';
import type { AcceptedDelivery, StartAutomations } from './start-automations.ts';

/** A delivery that passed all checks except that of its identity. */
export interface CheckedDelivery {
  readonly webhook: KnownWebhook;
  readonly id: string;
  readonly body: Buffer;
  readonly payload: unknown;
  readonly identity: Identity;
  /** The provider's name of the event; null: it has none. */
  readonly event: string | null;
  /** Stored beside the payload. */
  readonly headers: KeptHeaders;
  readonly replayOf?: string;
  /** True: the provider only checks the URL. */
  readonly startsNothing?: true;
}

export type Written = { readonly kind: 'accepted' | 'duplicate' };

/** `changed`: the webhook has another version now. `full`: its budget is used up; `waitMs` until there is room again. */
export type NotWritten = { readonly kind: 'changed' } | { readonly kind: 'full'; readonly waitMs: number };

/** `held`: the delivery needs a transaction of its own, because it may start something or its webhook is locked. */
type Inserted = Written | NotWritten | { readonly kind: 'held' };

/** Writes deliveries in one statement. With `holds`, those that may start something are not written. */
export async function insertAll(
  db: Queryable,
  deliveries: readonly CheckedDelivery[],
  holds: boolean,
): Promise<Inserted[]> {
  const column = <T>(of: (delivery: CheckedDelivery) => T): T[] => deliveries.map(of);
  const rows = await db.query(holds ? insertUnheld : insertEach, [
    column(({ webhook }) => webhook.uid),
    column(({ webhook }) => webhook.version),
    column(({ id }) => id),
    column(({ body }) => body.length),
    column(({ identity }) => identity.text),
    column(({ identity }) => identity.hash),
    column(({ replayOf = null }) => replayOf),
    column(({ body }) => body),
    column(({ event }) => event),
    column(({ startsNothing = false }) => startsNothing),
    column(({ headers }) => JSON.stringify(headers)),
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
        webhook.fullUntil.deliveries = Date.now() + waitMs;
        return { kind: 'full', waitMs };
      }
      default:
        return { kind: 'changed' };
    }
  });
}

/** Writes deliveries and starts the runs of the automations that they match, in the transaction of the caller. */
export async function writeWithin(
  tx: Queryable,
  startAutomations: StartAutomations | undefined,
  deliveries: readonly CheckedDelivery[],
): Promise<(Written | NotWritten)[]> {
  const written = (await insertAll(tx, deliveries, false)).map((each) => {
    if (each.kind === 'held') throw new Error('a delivery was held back in the transaction that starts its runs');
    return each;
  });
  if (startAutomations) {
    const starting = deliveries.filter((each, index) => written[index]?.kind === 'accepted' && !each.startsNothing);
    await start(tx, startAutomations, starting);
  }
  return written;
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

async function start(
  tx: Queryable,
  startAutomations: StartAutomations,
  deliveries: readonly CheckedDelivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const reached = await startAutomations(tx, deliveries.map(toAccepted));
  for (const [index, { webhook }] of deliveries.entries()) webhook.hints.feedsAutomations = reached[index] ?? false;
}
