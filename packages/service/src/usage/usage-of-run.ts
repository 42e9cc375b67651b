import type { Queryable, Statement } from '../store/database/database.ts';

/** `request_usage` of a RunItem, as far as models go: credits are US cents. Costs are left out where one is not known. */
export interface RunUsage {
  readonly total_tokens: number;
  readonly inference_cost?: number;
  readonly inference_cost_usd?: number;
  readonly inference_cost_breakdown_usd?: {
    readonly input_cost_usd: number;
    readonly output_cost_usd: number;
    readonly input_cache_read_cost_usd: number;
    readonly input_cache_write_cost_usd: number;
  };
}

interface Row {
  readonly run_id: string;
  readonly tokens: string;
  readonly unknown: boolean;
  readonly input: string;
  readonly output: string;
  readonly cache_read: string;
  readonly cache_write: string;
}

/** A request that used no tokens costs nothing, whatever its model: it does not make the cost of the run unknown. */
const sum: Statement = {
  name: 'gateway_usage_of_runs',
  text: `SELECT run_id,
      sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens)::text AS tokens,
      bool_or(input_cost_usd IS NULL AND input_tokens + output_tokens + cache_read_tokens + cache_write_tokens > 0) AS unknown,
      coalesce(sum(input_cost_usd), 0)::text AS input,
      coalesce(sum(output_cost_usd), 0)::text AS output,
      coalesce(sum(cache_read_cost_usd), 0)::text AS cache_read,
      coalesce(sum(cache_write_cost_usd), 0)::text AS cache_write
    FROM model_requests WHERE run_id = ANY($1::uuid[]) GROUP BY run_id`,
};

/** Whole nano-dollars: the sum of doubles shows no 0.30000000000000004. */
const rounded = (usd: number): number => Math.round(usd * 1e9) / 1e9;

/** What each of `runIds` has used so far, in one query; runs that made no request to a model are not in the map. */
export async function usageOfRuns(database: Queryable, runIds: readonly string[]): Promise<Map<string, RunUsage>> {
  const usage = new Map<string, RunUsage>();
  if (runIds.length === 0) return usage;
  for (const row of await database.query<Row>(sum, [runIds])) {
    const total_tokens = Number(row.tokens);
    if (row.unknown) {
      usage.set(row.run_id, { total_tokens });
      continue;
    }
    const parts = {
      input_cost_usd: rounded(Number(row.input)),
      output_cost_usd: rounded(Number(row.output)),
      input_cache_read_cost_usd: rounded(Number(row.cache_read)),
      input_cache_write_cost_usd: rounded(Number(row.cache_write)),
    };
    const usd = rounded(Object.values(parts).reduce((all, part) => all + part, 0));
    usage.set(row.run_id, {
      total_tokens,
      inference_cost: rounded(usd * 100),
      inference_cost_usd: usd,
      inference_cost_breakdown_usd: parts,
    });
  }
  return usage;
}
