import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  numeric,
  text,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';

/** Numbers of tokens. Each token is counted in exactly one of the four members. */
export type SummedTokens = Readonly<Record<'input' | 'output' | 'cacheRead' | 'cacheWrite', number>>;

/** Sums of the ended requests of a run to one model. */
interface TokensOfModel extends SummedTokens {
  readonly model: string;
  readonly requests: number;
}

/** Sums of the requests of a run that have ended. There is at least one such request. */
export interface TokensOfRun {
  /** One entry for each model, sorted by the name of the model. */
  readonly models: readonly TokensOfModel[];
  /** Id of the execution that sent the last request. */
  readonly executionId: string;
  readonly lastAt: string;
  readonly ageSeconds: number;
  /** True if another request is in progress. */
  readonly isOpen: boolean;
}

const sumByModel = defineStatement({
  name: 'sum_tokens_of_run_by_model',
  text: `
    SELECT model_id AS model, count(*)::integer AS requests, sum(input_tokens) AS input, sum(output_tokens) AS output,
      sum(cache_read_tokens) AS "cacheRead", sum(cache_write_tokens) AS "cacheWrite"
    FROM model_requests WHERE run_id = $1 GROUP BY model_id ORDER BY model_id`,
  row: {
    model: text(),
    requests: integer,
    input: numeric,
    output: numeric,
    cacheRead: numeric,
    cacheWrite: numeric,
  },
});

const readLast = defineStatement({
  name: 'read_last_model_request_of_run',
  text: `
    SELECT execution_id AS "executionId", created_at AS "lastAt",
      extract(epoch FROM now() - created_at)::integer AS "ageSeconds",
      EXISTS (SELECT FROM open_model_requests o WHERE o.run_id = $1) AS "isOpen"
    FROM model_requests WHERE run_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`,
  row: { executionId: uuid, lastAt: timestamp, ageSeconds: integer, isOpen: boolean },
});

/** Returns the numbers of tokens of the run's requests to models; null if no request has ended. */
export async function tokensOfRun(db: Queryable, runId: string): Promise<TokensOfRun | null> {
  const [last] = await db.query(readLast, [runId]);
  if (!last) return null;
  const models = (await db.query(sumByModel, [runId])).map(({ model, requests, ...counts }) => ({
    model,
    requests,
    input: Number(counts.input),
    output: Number(counts.output),
    cacheRead: Number(counts.cacheRead),
    cacheWrite: Number(counts.cacheWrite),
  }));
  return { models, ...last, ageSeconds: Math.max(0, last.ageSeconds) };
}
