import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../platform/store/database/statement.ts';
import type { ModelUsage } from './model-usage.ts';

/** The statement locks the run's row, so that the row cannot be deleted until the commit. */
const insertRequest = defineStatement({
  name: 'insert_model_request',
  text: `
    WITH run AS (SELECT id FROM runs WHERE id = $2 FOR KEY SHARE
    ), request AS (
      INSERT INTO model_requests
        (id, run_id, execution_id, model_id, provider, status, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
         input_cost_usd, output_cost_usd, cache_read_cost_usd, cache_write_cost_usd, duration_ms, tools_cost_usd)
      SELECT $1, run.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16 FROM run
      ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT EXISTS (SELECT FROM run) AS is_run_there, EXISTS (SELECT FROM request) AS is_new`,
  row: { is_run_there: boolean, is_new: boolean },
});

/** Locks rows in the order of their ids, like `admit.ts`, so that two requests in one tree of runs cannot deadlock. */
const addToRuns = defineStatement({
  name: 'add_to_run_spend',
  text: `
    INSERT INTO run_spend (run_id, spent_usd, answers)
    SELECT id, $2::numeric, $3::bigint FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id
    ON CONFLICT (run_id) DO UPDATE SET spent_usd = run_spend.spent_usd + excluded.spent_usd, answers = run_spend.answers + excluded.answers`,
  row: {},
});

const addToTeam = defineStatement({
  name: 'add_to_team_spend',
  text: `
    WITH spend AS (
      INSERT INTO team_spend (team_id, month, spent_usd)
      SELECT id, date_trunc('month', now() AT TIME ZONE 'UTC')::date, $2::numeric FROM teams WHERE id = $1
      ON CONFLICT (team_id, month) DO UPDATE SET spent_usd = team_spend.spent_usd + excluded.spent_usd
      RETURNING team_id
    )
    UPDATE team_budgets SET credits = credits - $2::numeric * 100 FROM spend
    WHERE team_budgets.team_id = spend.team_id AND credits IS NOT NULL`,
  row: {},
});

const addToDay = defineStatement({
  name: 'add_to_usage_days',
  text: `
    INSERT INTO usage_days AS d (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid,
      automation_uid, factory_uid, environment_uid, requests,
      input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, unpriced_requests)
    SELECT id, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, $12, $13, coalesce($14::numeric, 0),
      CASE WHEN $14::numeric IS NULL AND $15::boolean THEN 1 ELSE 0 END FROM teams WHERE id = $1
    ON CONFLICT (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid,
      coalesce(automation_uid, '?'), coalesce(factory_uid, '?'), coalesce(environment_uid, '?')) DO UPDATE SET
      requests = d.requests + 1, input_tokens = d.input_tokens + excluded.input_tokens,
      output_tokens = d.output_tokens + excluded.output_tokens, cache_read_tokens = d.cache_read_tokens + excluded.cache_read_tokens,
      cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens, cost_usd = d.cost_usd + excluded.cost_usd,
      unpriced_requests = d.unpriced_requests + excluded.unpriced_requests`,
  row: {},
});

const closeRequest = defineStatement({
  name: 'close_model_request',
  text: 'DELETE FROM open_model_requests WHERE id = $1',
  row: {},
});

/**
 * Returns the value of a column for an object to which the run belongs, such as an automation: '' if the run has none, NULL if an older
 * version of the service stored the request.
 */
const columnOf = (uid: string | null | undefined): string | null => (uid === null ? '' : (uid ?? null));

/**
 * Records the usage of one request to a model: for its run, the run's ancestors, the team and the report. Records each `requestId` only
 * once. The costs are NULL if the price is not known.
 */
export async function recordUsage(db: Database, usage: ModelUsage): Promise<void> {
  await db.transaction((tx) => recordUsageWithin(tx, usage));
}

/** Records usage like `recordUsage`, but in the caller's transaction. */
export async function recordUsageWithin(tx: Queryable, usage: ModelUsage): Promise<void> {
  const cost = usage.breakdown;
  const tokens = [usage.inputTokens, usage.outputTokens, usage.cacheReadTokens, usage.cacheWriteTokens];
  const [request] = await tx.query(insertRequest, [
    usage.requestId,
    usage.runId,
    usage.executionId,
    usage.modelId,
    usage.provider,
    usage.status,
    ...tokens,
    cost?.input ?? null,
    cost?.output ?? null,
    cost?.cacheRead ?? null,
    cost?.cacheWrite ?? null,
    usage.durationMs,
    usage.toolsUsd > 0 ? usage.toolsUsd : null,
  ]);
  // Count the request for the team even if the run was deleted meanwhile.
  if (request?.is_new || !request?.is_run_there) {
    await tx.query(addToRuns, [[usage.runId, ...usage.ancestorIds], usage.chargedUsd, usage.isAnswer ? 1 : 0]);
    await tx.query(addToTeam, [usage.teamId, usage.chargedUsd]);
    const { creator, executor } = usage;
    const who = [creator.kind, creator.uid, executor.kind, executor.uid];
    const things = [usage.automationUid, usage.factoryUid, usage.environmentId].map(columnOf);
    await tx.query(addToDay, [
      usage.teamId,
      usage.modelId,
      ...who,
      ...things,
      ...tokens,
      usage.costUsd,
      usage.isAnswer,
    ]);
  }
  await tx.query(closeRequest, [usage.requestId]);
}

/**
 * Returns SQL for the US dollars that a run and all its descendants have spent, as budgets count them. `run`: SQL for the id of the run.
 */
export const spendOf = (run: string): string => `(SELECT spent_usd FROM run_spend WHERE run_id = ${run})`;
