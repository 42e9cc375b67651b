/** Runs and starts of automations that one transaction writes together. */
import { defineInsertRuns, parametersOfRuns, type RunBatch } from '../runs/submit/insert-runs.ts';
import type { Queryable } from '../store/database/database.ts';
import { noteOutcomes, noteOutcomesOf, type OutcomeOfDelivery } from '../webhooks/log/note-outcomes.ts';

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
  /** Writes the runs and starts that were added since the last time, and the outcomes of deliveries. */
  flush(notes?: readonly OutcomeOfDelivery[]): Promise<void>;
}

/** The ids of the starts are in the order of the input. */
const insertRunsAndStarts = defineInsertRuns(
  'insert_runs_and_starts_of_automations',
  `start AS (
      INSERT INTO automation_starts (automation_uid, webhook_uid, delivery_id, lane, run_id, cancels_previous)
      SELECT i."automationUid", i."webhookUid", i."deliveryId", i.lane, i."runId", i."cancelsPrevious"
      FROM jsonb_to_recordset($4::jsonb) AS i("automationUid" text, "webhookUid" text, "deliveryId" uuid, lane text, "runId" uuid,
        "cancelsPrevious" boolean)
    ), note AS (${noteOutcomesOf('$5')}
    ), `,
);

/** Makes an empty batch. Its owner flushes it before the transaction ends. */
export function makeStartBatch(tx: Queryable): StartBatch {
  const runs: RunBatch = [];
  const starts: StartOfBatch[] = [];
  return {
    runs,
    starts,
    flush: async (notes = []) => {
      if (runs.length === 0 && starts.length === 0) {
        await noteOutcomes(tx, notes);
        return;
      }
      const parameters = [...parametersOfRuns(runs.splice(0)), JSON.stringify(starts.splice(0)), JSON.stringify(notes)];
      await tx.query(insertRunsAndStarts, parameters);
    },
  };
}
