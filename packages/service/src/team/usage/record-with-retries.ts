import type { Database } from '../../platform/store/database/database.ts';
import { eachAlone } from '../../platform/store/database/sweep.ts';
import type { ModelUsage } from './model-usage.ts';
import { recordUsage } from './record-usage.ts';

interface RecorderLog {
  error(fields: object, message: string): void;
}

/** Records usage. While the database does not accept it, stores it in memory. */
export interface UsageRecorder {
  /** Never rejects. */
  record(usage: ModelUsage): Promise<void>;
  /** Records again the usage that could not be recorded. */
  retry(): Promise<void>;
}

/** Usage above this number is lost, and logged. */
const maxKept = 10_000;

export function makeUsageRecorder(db: Database, log: RecorderLog): UsageRecorder {
  const unrecorded = new Map<string, ModelUsage>();
  return {
    record: async (usage) => {
      await recordUsage(db, usage).catch((error: unknown) => {
        if (unrecorded.size < maxKept) unrecorded.set(usage.requestId, usage);
        const { runId, requestId, chargedUsd } = usage;
        const fields = { err: error, run_id: runId, request_id: requestId, cost_usd: chargedUsd };
        log.error(fields, 'a model request is not accounted for yet');
      });
    },
    retry: async () => {
      const again = async ([id, usage]: readonly [string, ModelUsage]) => {
        await recordUsage(db, usage);
        unrecorded.delete(id);
      };
      await eachAlone([...unrecorded], again, ([id, { runId }], error) =>
        log.error({ err: error, run_id: runId, request_id: id }, 'a model request is not accounted for yet'),
      );
    },
  };
}
