import type { RequestUsage } from '@runyard/contract/runs/runs';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, json, numeric, uuid } from '../../platform/store/database/statement.ts';

type ModelUsage = NonNullable<RequestUsage['model_token_usage']>;

/** The usage of models, as the member `request_usage` of a RunItem shows it. Costs are absent if the cost of any request is unknown. */
export type RunUsage = Pick<
  RequestUsage,
  'total_tokens' | 'model_token_usage' | 'inference_cost' | 'inference_cost_usd' | 'inference_cost_breakdown_usd'
>;

/**
 * Adds up the requests of each run. A request without tokens costs nothing, even if the price is unknown, so the cost of the run stays
 * known.
 */
const sumRequests = defineStatement({
  name: 'sum_model_requests_of_runs',
  text: `SELECT run_id,
      sum(tokens) AS tokens,
      jsonb_agg(jsonb_build_object('model_id', model_id, 'total_tokens', tokens, 'usage_type', 'warp') ORDER BY tokens DESC, model_id) AS models,
      bool_or(unknown) AS unknown,
      coalesce(sum(input), 0) AS input,
      coalesce(sum(output), 0) AS output,
      coalesce(sum(cache_read), 0) AS cache_read,
      coalesce(sum(cache_write), 0) AS cache_write,
      coalesce(sum(tools), 0) AS tools
    FROM (
      SELECT run_id, model_id,
        sum(input_tokens + output_tokens + cache_read_tokens + cache_write_tokens) AS tokens,
        bool_or(input_cost_usd IS NULL AND input_tokens + output_tokens + cache_read_tokens + cache_write_tokens > 0) AS unknown,
        sum(input_cost_usd) AS input, sum(output_cost_usd) AS output,
        sum(cache_read_cost_usd) AS cache_read, sum(cache_write_cost_usd) AS cache_write, sum(tools_cost_usd) AS tools
      FROM model_requests WHERE run_id = ANY($1::uuid[]) GROUP BY run_id, model_id
    ) of_model GROUP BY run_id`,
  row: {
    run_id: uuid,
    tokens: numeric,
    models: json<ModelUsage>(),
    unknown: boolean,
    input: numeric,
    output: numeric,
    cache_read: numeric,
    cache_write: numeric,
    tools: numeric,
  },
});

/** Rounds to billionths of a dollar, so that a sum of doubles is not shown as 0.30000000000000004. */
const rounded = (usd: number): number => Math.round(usd * 1e9) / 1e9;

/** Returns a map with the present usage of each run. The map has no entry for runs that sent no request to a model. */
export async function usageOfRuns(database: Queryable, runIds: readonly string[]): Promise<Map<string, RunUsage>> {
  const usage = new Map<string, RunUsage>();
  if (runIds.length === 0) return usage;
  for (const row of await database.query(sumRequests, [runIds])) {
    const tokens = { total_tokens: Number(row.tokens), model_token_usage: row.models };
    if (row.unknown) {
      usage.set(row.run_id, tokens);
      continue;
    }
    const parts = {
      input_cost_usd: rounded(Number(row.input)),
      output_cost_usd: rounded(Number(row.output)),
      input_cache_read_cost_usd: rounded(Number(row.cache_read)),
      input_cache_write_cost_usd: rounded(Number(row.cache_write)),
      ...(Number(row.tools) > 0 ? { provider_tools_cost_usd: rounded(Number(row.tools)) } : {}),
    };
    const usd = rounded(Object.values(parts).reduce((sum, part) => sum + part, 0));
    usage.set(row.run_id, {
      ...tokens,
      inference_cost: rounded(usd * 100),
      inference_cost_usd: usd,
      inference_cost_breakdown_usd: parts,
    });
  }
  return usage;
}
