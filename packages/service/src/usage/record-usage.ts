import type { Queryable } from '../store/database/database.ts';
import { defineStatement } from '../store/database/statement.ts';
import type { ModelUsage } from './model-usage.ts';

const insertRequest = defineStatement({
  name: 'insert_model_request',
  text: `INSERT INTO model_requests
    (id, run_id, execution_id, model_id, provider, status, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
     input_cost_usd, output_cost_usd, cache_read_cost_usd, cache_write_cost_usd, duration_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT (id) DO NOTHING`,
  row: {},
});

/** Stores one request to a model, once for each `requestId`. Its costs are NULL where the price is not known. */
export async function recordUsage(database: Queryable, usage: ModelUsage): Promise<void> {
  const cost = usage.breakdown;
  await database.query(insertRequest, [
    usage.requestId,
    usage.runId,
    usage.executionId,
    usage.modelId,
    usage.provider,
    usage.status,
    usage.inputTokens,
    usage.outputTokens,
    usage.cacheReadTokens,
    usage.cacheWriteTokens,
    cost?.input ?? null,
    cost?.output ?? null,
    cost?.cacheRead ?? null,
    cost?.cacheWrite ?? null,
    usage.durationMs,
  ]);
}
