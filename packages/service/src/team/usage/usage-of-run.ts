import type { CategoryUsage, InferenceUsage, RequestUsage } from '@runyard/contract/runs/request-usage';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, numeric, type RowOf, text, uuid } from '../../platform/store/database/statement.ts';
import type { ProviderName } from '../models/providers.ts';

type ModelUsage = NonNullable<RequestUsage['model_token_usage']>[number];

/** The usage of models, as the member `request_usage` of a RunItem shows it. Costs are absent if the cost of any request is unknown. */
export type RunUsage = Pick<
  RequestUsage,
  | 'total_tokens'
  | 'model_token_usage'
  | 'inference_cost'
  | 'inference_cost_usd'
  | 'inference_cost_breakdown_usd'
  | 'usage_by_category'
>;

/**
 * Adds up the requests of each run to each model, most tokens first. A request without tokens costs nothing, even if the price is unknown,
 * so the cost of the run stays known.
 */
const sumRequests = defineStatement({
  name: 'sum_model_requests_of_runs',
  text: `
    SELECT run_id, model_id, provider, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, unknown,
      coalesce(input, 0) AS input, coalesce(output, 0) AS output,
      coalesce(cache_read, 0) AS cache_read, coalesce(cache_write, 0) AS cache_write, coalesce(tools, 0) AS tools
    FROM (
      SELECT run_id, model_id, min(provider) AS provider,
        sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
        sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
        bool_or(input_cost_usd IS NULL AND input_tokens + output_tokens + cache_read_tokens + cache_write_tokens > 0) AS unknown,
        sum(input_cost_usd) AS input, sum(output_cost_usd) AS output,
        sum(cache_read_cost_usd) AS cache_read, sum(cache_write_cost_usd) AS cache_write, sum(tools_cost_usd) AS tools
      FROM model_requests WHERE run_id = ANY($1::uuid[]) GROUP BY run_id, model_id
    ) of_model ORDER BY input_tokens + output_tokens + cache_read_tokens + cache_write_tokens DESC, model_id`,
  row: {
    run_id: uuid,
    model_id: text(),
    provider: text<ProviderName>(),
    input_tokens: numeric,
    output_tokens: numeric,
    cache_read_tokens: numeric,
    cache_write_tokens: numeric,
    unknown: boolean,
    input: numeric,
    output: numeric,
    cache_read: numeric,
    cache_write: numeric,
    tools: numeric,
  },
});

type OfModel = RowOf<typeof sumRequests>;

/** Rounds to billionths, so that a sum of doubles is not shown as 0.30000000000000004. */
const rounded = (amount: number): number => Math.round(amount * 1e9) / 1e9;

const tokensOf = (row: OfModel): number =>
  Number(row.input_tokens) + Number(row.output_tokens) + Number(row.cache_read_tokens) + Number(row.cache_write_tokens);

/** Returns whose access to the model a request uses. Keys and endpoints are always those of the installation. */
const usageTypeOf = ({ provider }: OfModel): ModelUsage['usage_type'] =>
  provider === 'local' ? 'custom_endpoint' : 'byok';

const toModelUsage = (row: OfModel): ModelUsage => ({
  model_id: row.model_id,
  total_tokens: tokensOf(row),
  usage_type: usageTypeOf(row),
  tokens_by_category: { primary_agent: tokensOf(row) },
});

const toInferenceUsage = (row: OfModel): InferenceUsage => ({
  token_count: {
    input: Number(row.input_tokens),
    output: Number(row.output_tokens),
    input_cache_read: Number(row.cache_read_tokens),
    input_cache_write: Number(row.cache_write_tokens),
  },
  cost_in_cents: {
    input_cost_in_cents: rounded(Number(row.input) * 100),
    output_cost_in_cents: rounded(Number(row.output) * 100),
    input_cache_read_cost_in_cents: rounded(Number(row.cache_read) * 100),
    input_cache_write_cost_in_cents: rounded(Number(row.cache_write) * 100),
  },
  web_search_count: 0,
  web_search_cost_in_cents: rounded(Number(row.tools) * 100),
});

/** Returns the usage of each model, in the group of its kind of access. A kind without models is absent. */
function toCategory(rows: readonly OfModel[]): CategoryUsage {
  const of = (type: ModelUsage['usage_type']) =>
    Object.fromEntries(
      rows.filter((row) => usageTypeOf(row) === type).map((row) => [row.model_id, toInferenceUsage(row)]),
    );
  const [byok, custom] = [of('byok'), of('custom_endpoint')];
  return {
    platform_usage_in_cents: 0,
    ...(Object.keys(byok).length > 0 ? { byok_inference_usage: byok } : {}),
    ...(Object.keys(custom).length > 0 ? { custom_endpoint_inference_usage: custom } : {}),
  };
}

function toRunUsage(rows: readonly OfModel[]): RunUsage {
  const tokens = {
    total_tokens: rows.reduce((sum, row) => sum + tokensOf(row), 0),
    model_token_usage: rows.map(toModelUsage),
  };
  if (rows.some(({ unknown }) => unknown)) return tokens;
  const sumOf = (part: 'input' | 'output' | 'cache_read' | 'cache_write' | 'tools') =>
    rounded(rows.reduce((sum, row) => sum + Number(row[part]), 0));
  const parts = {
    input_cost_usd: sumOf('input'),
    output_cost_usd: sumOf('output'),
    input_cache_read_cost_usd: sumOf('cache_read'),
    input_cache_write_cost_usd: sumOf('cache_write'),
    ...(sumOf('tools') > 0 ? { provider_tools_cost_usd: sumOf('tools') } : {}),
  };
  const usd = rounded(Object.values(parts).reduce((sum, part) => sum + part, 0));
  return {
    ...tokens,
    inference_cost: rounded(usd * 100),
    inference_cost_usd: usd,
    inference_cost_breakdown_usd: parts,
    usage_by_category: { primary_agent: toCategory(rows) },
  };
}

/** Returns a map with the present usage of each run. The map has no entry for runs that sent no request to a model. */
export async function usageOfRuns(database: Queryable, runIds: readonly string[]): Promise<Map<string, RunUsage>> {
  if (runIds.length === 0) return new Map();
  const ofRuns = Map.groupBy(await database.query(sumRequests, [runIds]), ({ run_id }) => run_id);
  return new Map([...ofRuns].map(([runId, rows]) => [runId, toRunUsage(rows)]));
}
