/** Runs, starts of automations and deliveries that one transaction writes together. */

import type { Transaction } from '../../platform/store/database/transaction.ts';
import type { PreparedRun } from '../../runs/runs/submit/prepare.ts';
import { defineInsertRuns, parametersOfRuns } from '../../runs/runs/submit/write-runs.ts';
import {
  type DeliveryRows,
  insertDeliveryRows,
  makeDeliveryRows,
  type OutcomeOfDelivery,
} from '../webhooks/ingest/delivery-rows.ts';

/** A delivery for which an automation starts a run. */
interface StartOfBatch {
  readonly automationUid: string;
  readonly webhookUid: string;
  readonly deliveryId: string;
  readonly lane: string | null;
  /** Null: the delivery waits for the end of another run. */
  readonly runId: string | null;
  readonly cancelsPrevious: boolean;
}

export interface StartBatch {
  readonly runs: PreparedRun[];
  readonly starts: StartOfBatch[];
  /** Writes the runs and starts that were added since the last time. */
  flush(): Promise<void>;
  /** Writes the rest, together with the deliveries and their outcomes. If there is none, the caller writes the deliveries. */
  finish(outcomes: readonly OutcomeOfDelivery[]): void;
}

/** The ids of the starts are in the order of the input. */
const insertRunsAndStarts = defineInsertRuns(
  'insert_runs_and_starts_of_automations',
  `start AS (
      INSERT INTO automation_starts (automation_uid, webhook_uid, delivery_id, lane, run_id, cancels_previous)
      SELECT i."automationUid", i."webhookUid", i."deliveryId", i.lane, i."runId", i."cancelsPrevious"
      FROM jsonb_to_recordset($4::jsonb) AS i("automationUid" text, "webhookUid" text, "deliveryId" uuid, lane text, "runId" uuid,
        "cancelsPrevious" boolean)
    ), ${insertDeliveryRows('$5', '$6', '$7')}`,
);

const noDeliveries = makeDeliveryRows([]).rows;

/** Makes an empty batch for the deliveries of `rows`. Its owner finishes it before the transaction ends. */
export function makeStartBatch(tx: Transaction, rows: DeliveryRows): StartBatch {
  const runs: PreparedRun[] = [];
  const starts: StartOfBatch[] = [];
  const take = (deliveries: DeliveryRows) =>
    runs.length === 0 && starts.length === 0
      ? null
      : [...parametersOfRuns(runs.splice(0)), JSON.stringify(starts.splice(0)), ...deliveries.take()];
  return {
    runs,
    starts,
    flush: async () => {
      const parameters = take(noDeliveries);
      if (parameters) await tx.query(insertRunsAndStarts, parameters);
    },
    finish: (outcomes) => {
      rows.note(outcomes);
      const parameters = take(rows);
      if (parameters) tx.atCommit(insertRunsAndStarts, parameters);
    },
  };
}
