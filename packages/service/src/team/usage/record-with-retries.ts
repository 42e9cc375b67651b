import type { Database } from '../../platform/store/database/database.ts';
import { eachAlone } from '../../platform/store/database/sweep.ts';
import type { ModelUsage } from './model-usage.ts';
import { recordUsage } from './record-usage.ts';

interface RecorderLog {
  error(fields: object, message: string): void;
}

/** Records usage. If the database does not accept it, keeps the usage in memory. */
export interface UsageRecorder {
  /** Never rejects. */
  record(usage: ModelUsage): Promise<void>;
  /** Tries again to record the usage that is kept in memory. */
  retry(): Promise<void>;
}

/** Maximum number of requests whose usage is kept in memory. The usage of further requests is lost, and this is logged. */
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
