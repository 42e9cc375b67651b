/** Writes deliveries that passed all checks but that of their identity and that start nothing. */
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { KnownWebhook } from './directory.ts';
import type { EventHeaders } from './event-headers.ts';
import type { Identity } from './identity.ts';
import { insertUnheld } from './insert-deliveries.ts';
import type { SignedBytes } from './same-bytes.ts';

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
  /** Advice to a person, for the log. */
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
