/** Runs, starts and failures of automations that one transaction writes together. */
import { insertRuns } from '../runs/submit/insert-runs.ts';
import type { Queryable, Statement } from '../store/database/database.ts';
import { noteFailure, noteSuccess } from './failures.ts';
import type { SpawnBatch } from './spawn.ts';

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

export interface StartBatch extends SpawnBatch {
  readonly starts: StartOfBatch[];
  /** Writes the runs and starts that were added since the last time. */
  flush(): Promise<void>;
  /** Writes everything, the results last and by UID: every transaction locks the automations in this order. */
  end(): Promise<void>;
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

/** Makes an empty batch. Its owner ends it before the transaction ends. */
export function makeStartBatch(tx: Queryable): StartBatch {
  const runs: SpawnBatch['runs'] = [];
  const results: SpawnBatch['results'] = [];
  const starts: StartOfBatch[] = [];
  const flush = async () => {
    await insertRuns(tx, runs.splice(0));
    if (starts.length > 0) await tx.query(insertStarts, [JSON.stringify(starts.splice(0))]);
  };
  return {
    runs,
    starts,
    results,
    flush,
    end: async () => {
      await flush();
      for (const { row, failure } of results.splice(0).sort((a, b) => compareUids(a.row.uid, b.row.uid)))
        if (failure) await noteFailure(tx, row.uid, failure.reason, failure.passing);
        else await noteSuccess(tx, row);
    },
  };
}

const compareUids = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
