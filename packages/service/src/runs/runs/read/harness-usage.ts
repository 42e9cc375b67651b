/** Converts the token counts of a run to the counters that the run's harness shows itself. */
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import type { HarnessUsage } from '@runyard/contract/runs/harness-usage';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../../platform/store/database/statement.ts';
import { type SummedTokens, type TokensOfRun, tokensOfRun } from '../../../team/usage/tokens-of-run.ts';
import type { RunReference } from './read.ts';

const readNumber = defineStatement({
  name: 'read_number_of_execution',
  text: 'SELECT number FROM executions WHERE id = $1',
  row: { number: integer },
});

/** Returns the token usage of a run in the counters of the run's harness, or that the harness has no such counters. */
export async function harnessUsageOf(db: Database, run: RunReference): Promise<HarnessUsage> {
  const answer = { run_id: run.id, conversation_id: run.conversationId };
  const counters = findHarness(run.harness)?.usageCounters;
  const tokens = counters === undefined ? null : await tokensOfRun(db, run.id);
  if (counters === undefined || !tokens) return { available: false, ...answer };
  const [execution] = await db.query(readNumber, [tokens.executionId]);
  const envelope = {
    metricsVersion: 1 as const,
    executionId: execution?.number ?? 1,
    captureSequence: tokens.models.reduce((sum, { requests }) => sum + requests, 0),
    capturedAt: tokens.lastAt,
  };
  const coverage = {
    tokenStatus: tokens.isOpen ? ('partial' as const) : ('known' as const),
    toolStatus: 'unavailable' as const,
  };
  const usage =
    counters === 'CLAUDE_CODE'
      ? { ...envelope, harness: counters, snapshot: { coverage, payload: payloadOf(tokens, toClaude) } }
      : { ...envelope, harness: counters, snapshot: { coverage, payload: payloadOf(tokens, toCodex) } };
  return { available: true, ...answer, age_seconds: tokens.ageSeconds, usage };
}

function payloadOf<T>({ models }: TokensOfRun, toCounters: (counts: SummedTokens) => T) {
  const totals = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  for (const counts of models) {
    totals.input += counts.input;
    totals.output += counts.output;
    totals.cacheRead += counts.cacheRead;
    totals.cacheWrite += counts.cacheWrite;
  }
  return {
    usage: toCounters(totals),
    attribution: models.map((counts) => ({ model: counts.model, usage: toCounters(counts) })),
  };
}

/** Anthropic counts each token in one of four kinds, as the service does. */
const toClaude = ({ input, output, cacheRead, cacheWrite }: SummedTokens) => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_input_tokens: cacheRead,
  cache_creation_input_tokens: cacheWrite,
});

/** OpenAI counts the tokens of caches in `input_tokens` too. */
const toCodex = ({ input, output, cacheRead, cacheWrite }: SummedTokens) => ({
  input_tokens: input + cacheRead + cacheWrite,
  cached_input_tokens: cacheRead,
  cache_write_input_tokens: cacheWrite,
  output_tokens: output,
  total_tokens: input + cacheRead + cacheWrite + output,
});
