import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, float, integer, text } from '../../platform/store/database/statement.ts';
import type { TokenCounts } from '../models/price.ts';

/** A request that an execution sent to a model. */
export interface ModelRequest {
  readonly modelId: string;
  readonly status: number;
  readonly tokens: Pick<TokenCounts, 'input' | 'output' | 'cacheRead' | 'cacheWrite'>;
  /** Time in milliseconds since 1970. */
  readonly endMs: number;
  readonly durationMs: number;
}

const readRequests = defineStatement({
  name: 'read_model_requests_of_execution',
  text: `
    SELECT model_id, status, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, duration_ms,
      (extract(epoch FROM created_at) * 1000)::float8 AS end_ms
    FROM model_requests WHERE run_id = $1 AND execution_id = $2 AND created_at >= to_timestamp($3::float8 / 1000)
    ORDER BY created_at LIMIT 1000`,
  row: {
    model_id: text(),
    status: integer,
    input_tokens: integer,
    output_tokens: integer,
    cache_read_tokens: integer,
    cache_write_tokens: integer,
    duration_ms: integer,
    end_ms: float,
  },
});

/** Returns those requests of an execution that ended after a given time, in the order of time; at most 1,000. */
export async function readRequestsOfExecution(
  db: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { fromMs }: { readonly fromMs: number },
): Promise<ModelRequest[]> {
  return (await db.query(readRequests, [runId, executionId, fromMs])).map((row) => ({
    modelId: row.model_id,
    status: row.status,
    tokens: {
      input: row.input_tokens,
      output: row.output_tokens,
      cacheRead: row.cache_read_tokens,
      cacheWrite: row.cache_write_tokens,
    },
    endMs: row.end_ms,
    durationMs: row.duration_ms,
  }));
}
