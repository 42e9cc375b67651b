/** Runs and starts of automations that one transaction writes together. */
import { insertRuns, type RunBatch } from '../runs/submit/insert-runs.ts';
import type { Queryable, Statement } from '../store/database/database.ts';

/** A delivery for which an automation starts a run. */
interface NewStart {
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
  readonly starts: NewStart[];
  /** Writes all that was added since the last time. */
  flush(): Promise<void>;
}

/** The ids of the starts are in the order of the input. */
const insertStarts: Statement = {
  name: 'insert_starts_of_automations',
  text: `
    INSERT INTO automation_starts (automation_uid, webhook_uid, delivery_id, lane, run_id, cancels_previous)
    SELECT i."automationUid", i."webhookUid", i."deliveryId", i.lane, i."runId", i."cancelsPrevious"
    FROM jsonb_to_recordset($1::jsonb) AS i("automationUid" text, "webhookUid" text, "deliveryId" uuid, lane text, "runId" uuid,
      "cancelsPrevious" boolean)`,
};

/** Makes an empty batch. Its owner flushes it before the transaction ends. */
export function makeStartBatch(tx: Queryable): StartBatch {
  const runs: RunBatch = [];
  const starts: NewStart[] = [];
  return {
    runs,
    starts,
    flush: async () => {
      await insertRuns(tx, runs.splice(0));
      if (starts.length > 0) await tx.query(insertStarts, [JSON.stringify(starts.splice(0))]);
    },
  };
}
