import type { ModelTarget } from '../models/models.ts';
import { type Cost, costOf, type TokenCounts, totalOf } from '../models/price.ts';
import type { ProviderName } from '../models/providers.ts';

/** The execution that a run token belongs to, and its run. */
export interface RunTokenHolder {
  readonly runId: string;
  readonly executionId: string;
  readonly teamId: string;
  /** Id of the run's model, as the contract names it; `runbook` has no provider. */
  readonly modelId: string;
}

/** One request of a run to a model, reported once, at its end. */
export interface ModelUsage {
  readonly runId: string;
  readonly executionId: string;
  readonly modelId: string;
  readonly provider: ProviderName;
  /** UUID of this request. */
  readonly requestId: string;
  /** Tokens that were neither read from nor written to a cache: no token counts in two of the four kinds. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** US dollars; null: the price is not known. A request that was interrupted costs at least this. */
  readonly costUsd: number | null;
  readonly breakdown: Cost | null;
  /** HTTP status that the sandbox received; 502 where the provider ended a stream early, 499 where the client did. */
  readonly status: number;
  readonly durationMs: number;
}

/** Returns the usage of a request to `target` that used `tokens`. */
export function usageOf(
  holder: RunTokenHolder,
  target: ModelTarget,
  requestId: string,
  tokens: TokenCounts,
  status: number,
  durationMs: number,
): ModelUsage {
  const breakdown = costOf(tokens, target.price);
  return {
    runId: holder.runId,
    executionId: holder.executionId,
    modelId: target.id,
    provider: target.provider,
    requestId,
    inputTokens: tokens.input,
    outputTokens: tokens.output,
    cacheReadTokens: tokens.cacheRead,
    cacheWriteTokens: tokens.cacheWrite,
    costUsd: breakdown === null ? null : totalOf(breakdown),
    breakdown,
    status,
    durationMs: Math.round(durationMs),
  };
}
