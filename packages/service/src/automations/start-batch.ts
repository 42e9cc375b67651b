/** Runs, starts of automations and deliveries that one transaction writes together. */
import { defineInsertRuns, parametersOfRuns, type RunBatch } from '../runs/submit/insert-runs.ts';
import type { Queryable } from '../store/database/database.ts';
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
  readonly runs: RunBatch;
  readonly starts: StartOfBatch[];
  /** Writes the runs and starts that were added since the last time. */
  flush(): Promise<void>;
  /** Writes the rest, together with the deliveries and their outcomes. If there is none, the caller writes the deliveries. */
  finish(outcomes: readonly OutcomeOfDelivery[]): Promise<void>;
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
export function makeStartBatch(tx: Queryable, rows: DeliveryRows): StartBatch {
  const runs: RunBatch = [];
  const starts: StartOfBatch[] = [];
  const write = async (deliveries: DeliveryRows) => {
    if (runs.length === 0 && starts.length === 0) return;
    const parameters = [...parametersOfRuns(runs.splice(0)), JSON.stringify(starts.splice(0)), ...deliveries.take()];
    await tx.query(insertRunsAndStarts, parameters);
  };
  return {
    runs,
    starts,
    flush: () => write(noDeliveries),
    finish: async (outcomes) => {
      rows.note(outcomes);
      await write(rows);
    },
  };
}
