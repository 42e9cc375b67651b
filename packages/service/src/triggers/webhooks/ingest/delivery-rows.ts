/** The rows of deliveries that a transaction takes, until a statement writes them. */
import { maxWebhookDeliveriesPerMinute } from '@runyard/contract/limits';
import type { AutomationOutcome } from '@runyard/contract/webhooks/webhooks';
import { bytesArray } from '../../../platform/store/database/bytes-array.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { Transaction } from '../../../platform/store/database/transaction.ts';
import type { CheckedDelivery } from './write-deliveries.ts';

const perMinute = maxWebhookDeliveriesPerMinute;

/**
 * Returns the SQL of two common table expressions that write deliveries and take from the budgets of their webhooks, which the
 * transaction has locked. The arguments name the parameters that `DeliveryRows.take` returns.
 */
export const insertDeliveryRows = (rows: string, payloads: string, budgets: string): string => `
    webhook_delivery AS (
      INSERT INTO webhook_deliveries (id, webhook_uid, label, size_bytes, identity, identity_hash, replay_of, runs, outcomes, payload,
        provider_event, headers, signed_hash, reason)
      SELECT i.id, i.webhook_uid, i.label, i.size_bytes, i.identity, decode(i.identity_hash, 'hex'), i.replay_of, i.runs, i.outcomes,
        p.payload, i.provider_event, i.headers, decode(i.signed_hash, 'hex'), i.reason
      FROM jsonb_to_recordset(${rows}::jsonb) AS i(n bigint, id uuid, webhook_uid text, label text, size_bytes bigint, identity text,
          identity_hash text, replay_of uuid, runs text[], outcomes jsonb, provider_event text, headers jsonb, signed_hash text,
          reason text)
        JOIN unnest(${payloads}::bytea[]) WITH ORDINALITY AS p(payload, n) ON p.n = i.n
    ), webhook_budget AS (
      UPDATE webhooks w SET payload_bytes = w.payload_bytes + b.bytes,
        recent = (w.recent || array_fill(clock_timestamp(), ARRAY[b.count]))[greatest(1, cardinality(w.recent) + b.count - ${perMinute - 1}):]
      FROM jsonb_to_recordset(${budgets}::jsonb) AS b(uid text, count integer, bytes bigint) WHERE w.uid = b.uid
    )`;

const insert = defineStatement({
  name: 'insert_webhook_deliveries',
  text: `WITH ${insertDeliveryRows('$1', '$2', '$3')} SELECT`,
  row: {},
});

/** Ids of the runs that a delivery has started, and the outcome of each automation that selects its webhook. */
export interface OutcomeOfDelivery {
  readonly id: string;
  readonly runs: readonly string[];
  readonly outcomes: readonly AutomationOutcome[];
}

/** A delivery that the transaction takes. */
export interface TakenDelivery {
  readonly delivery: CheckedDelivery;
  readonly label: 'ACCEPTED' | 'DUPLICATE';
  /** Shown in the log; null: there is nothing to say. */
  readonly reason: string | null;
}

/** Deliveries to write. A statement that starts their runs writes them with `insertDeliveryRows`, so that each row is written once. */
export interface DeliveryRows {
  /** Adds the outcomes of deliveries that are not written yet. */
  note(outcomes: readonly OutcomeOfDelivery[]): void;
  /** Returns the parameters of `insertDeliveryRows` for the deliveries that no statement has taken yet. */
  take(): [rows: string, payloads: Buffer, budgets: string];
}

function toRow({ delivery, label, reason }: TakenDelivery, n: number, outcome: OutcomeOfDelivery | undefined) {
  const { id, webhook, body, identity, replayOf, event, headers, sameBytes } = delivery;
  return {
    n,
    id,
    webhook_uid: webhook.uid,
    label,
    size_bytes: body.length,
    identity: identity.text,
    identity_hash: identity.hash.toString('hex'),
    replay_of: replayOf,
    runs: outcome?.runs ?? [],
    outcomes: outcome?.outcomes ?? [],
    reason,
    provider_event: event,
    ...(label === 'ACCEPTED' ? { headers, signed_hash: sameBytes?.hash.toString('hex') } : {}),
  };
}

function budgetsOf(taken: readonly TakenDelivery[]) {
  const budgets = new Map<string, { uid: string; count: number; bytes: number }>();
  for (const { delivery } of taken) {
    const { uid } = delivery.webhook;
    const budget = budgets.get(uid) ?? { uid, count: 0, bytes: 0 };
    budget.count += 1;
    budget.bytes += delivery.body.length;
    budgets.set(uid, budget);
  }
  return [...budgets.values()];
}

/** Returns the rows of the deliveries, and the function that writes those that no other statement has taken. */
export function makeDeliveryRows(all: readonly TakenDelivery[]): {
  readonly rows: DeliveryRows;
  writeRest(tx: Transaction): void;
} {
  let taken = all;
  const noted = new Map<string, OutcomeOfDelivery>();
  const rows: DeliveryRows = {
    note: (outcomes) => {
      for (const outcome of outcomes) noted.set(outcome.id, outcome);
    },
    take: () => {
      const now = taken;
      taken = [];
      return [
        JSON.stringify(now.map((each, index) => toRow(each, index + 1, noted.get(each.delivery.id)))),
        bytesArray(now.map(({ delivery, label }) => (label === 'ACCEPTED' ? delivery.body : null))),
        JSON.stringify(budgetsOf(now)),
      ];
    },
  };
  const writeRest = (tx: Transaction) => {
    if (taken.length > 0) tx.atCommit(insert, rows.take());
  };
  return { rows, writeRest };
}
