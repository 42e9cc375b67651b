import { expect, it } from 'vitest';
import { modelUsage } from '../../../test/budgets.ts';
import { openTestService } from '../../../test/service.ts';
import type { ModelUsage } from './model-usage.ts';
import { recordUsage } from './record-usage.ts';
import { usageOfRuns } from './usage-of-run.ts';

const service = await openTestService();
const database = { db: service.deps.db };

const breakdown = { input: 0.0004, output: 0.0006, cacheRead: 0.000008, cacheWrite: 0.000035 };
const usage = (runId: string, { costUsd = 0.001043, ...changes }: Partial<ModelUsage> = {}): ModelUsage => ({
  ...modelUsage({ runId, teamId: service.teamId }, costUsd),
  chargedUsd: costUsd ?? 0.001043,
  breakdown,
  ...changes,
});

const byok = (model: string, tokens: number) => ({
  model_id: model,
  total_tokens: tokens,
  usage_type: 'byok',
  tokens_by_category: { primary_agent: tokens },
});

it('the usage of a run is the sum of its tokens and costs, in credits and in dollars', async () => {
  const [first, second, idle] = [await service.newRun(), await service.newRun(), await service.newRun()];
  await recordUsage(database.db, usage(first, { modelId: 'a-small-model', inputTokens: 1, cacheReadTokens: 0 }));
  await recordUsage(database.db, usage(first));
  await recordUsage(database.db, usage(second));
  const sums = await usageOfRuns(database.db, [first, second, idle]);
  expect(sums.get(first)).toEqual({
    total_tokens: 215,
    model_token_usage: [byok('anthropic/claude-opus-5-5', 177), byok('a-small-model', 38)],
    inference_cost: 0.2086,
    inference_cost_usd: 0.002086,
    inference_cost_breakdown_usd: {
      input_cost_usd: 0.0008,
      output_cost_usd: 0.0012,
      input_cache_read_cost_usd: 0.000016,
      input_cache_write_cost_usd: 0.00007,
    },
    usage_by_category: { primary_agent: expect.anything() },
  });
  expect(sums.get(second)?.total_tokens).toBe(177);
  expect(sums.has(idle)).toBe(false);
});

it('the usage by category has the tokens and costs of each model, apart for keys and for own endpoints', async () => {
  const run = await service.newRun();
  await recordUsage(database.db, usage(run, { toolsUsd: 0.02, costUsd: 0.021043, chargedUsd: 0.021043 }));
  await recordUsage(database.db, usage(run, { modelId: 'local/qwen', provider: 'local' }));
  const found = (await usageOfRuns(database.db, [run])).get(run);
  const of = (cents: number) => ({
    token_count: { input: 100, output: 30, input_cache_read: 40, input_cache_write: 7 },
    cost_in_cents: {
      input_cost_in_cents: 0.04,
      output_cost_in_cents: 0.06,
      input_cache_read_cost_in_cents: 0.0008,
      input_cache_write_cost_in_cents: 0.0035,
    },
    web_search_count: 0,
    web_search_cost_in_cents: cents,
  });
  expect(found?.usage_by_category).toEqual({
    primary_agent: {
      platform_usage_in_cents: 0,
      byok_inference_usage: { 'anthropic/claude-opus-5-5': of(2) },
      custom_endpoint_inference_usage: { 'local/qwen': of(0) },
    },
  });
  expect(found?.model_token_usage?.map(({ usage_type: type }) => type)).toEqual(['byok', 'custom_endpoint']);
});

it('a request that is recorded twice counts once', async () => {
  const run = await service.newRun();
  const once = usage(run);
  await recordUsage(database.db, once);
  await recordUsage(database.db, once);
  expect((await usageOfRuns(database.db, [run])).get(run)?.total_tokens).toBe(177);
});

it('the usage of a run has no cost if the price of one request is unknown', async () => {
  const run = await service.newRun();
  await recordUsage(database.db, usage(run));
  await recordUsage(database.db, usage(run, { costUsd: null, breakdown: null }));
  expect((await usageOfRuns(database.db, [run])).get(run)).toEqual({
    total_tokens: 354,
    model_token_usage: [byok('anthropic/claude-opus-5-5', 354)],
  });
});

it('a request without tokens is free even if the price of its model is unknown', async () => {
  const run = await service.newRun();
  const nothing = {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    costUsd: null,
    breakdown: null,
  };
  await recordUsage(database.db, usage(run, { ...nothing, status: 500 }));
  await recordUsage(database.db, usage(run));
  expect((await usageOfRuns(database.db, [run])).get(run)?.inference_cost_usd).toBe(0.001043);
});

it('the usage for an empty list of runs is an empty map', async () => {
  expect(await usageOfRuns(database.db, [])).toEqual(new Map());
});

it("the usage of a run shows the cost of the provider's own tools separately", async () => {
  const run = await service.newRun();
  await recordUsage(database.db, usage(run, { toolsUsd: 0.02, costUsd: 0.021043, chargedUsd: 0.021043 }));
  expect((await usageOfRuns(database.db, [run])).get(run)).toMatchObject({
    inference_cost_usd: 0.021043,
    inference_cost_breakdown_usd: { provider_tools_cost_usd: 0.02 },
  });
});
