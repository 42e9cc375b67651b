import type { ModelTarget } from '../models/models.ts';
import { type Cost, costOf, type TokenCounts, totalOf } from '../models/price.ts';
import type { ProviderName } from '../models/providers.ts';

/** What a run token stands for. */
export interface RunTokenHolder {
  readonly runId: string;
  readonly executionId: string;
  readonly teamId: string;
  /** The contract's id of the run's model; `runbook` has no provider. */
  readonly modelId: string;
}

/** One request of a run to a model, told once, when it is over. */
export interface ModelUsage {
  readonly runId: string;
  readonly executionId: string;
  readonly modelId: string;
  readonly provider: ProviderName;
  /** UUID of this request. */
  readonly requestId: string;
  /** The four kinds exclude each other: `inputTokens` is what was neither read from nor written to a cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** US dollars; null: the price is not known. A request that was cut costs at least this. */
  readonly costUsd: number | null;
  readonly breakdown: Cost | null;
  /** HTTP status that the sandbox saw; 502 where the provider broke off in mid-stream, 499 where the client did. */
  readonly status: number;
  readonly durationMs: number;
}

/** The account of a request to `target` that used `tokens`. */
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
