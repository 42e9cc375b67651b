import type { RunActor } from '../access/actor.ts';
import type { ModelTarget } from '../models/models.ts';
import {
  type Cost,
  chargeOf,
  costOf,
  costOfTools,
  type TokenCounts,
  type ToolCalls,
  totalOf,
} from '../models/price.ts';
import type { ProviderName } from '../models/providers.ts';

/** The execution that a run token belongs to, and its run. */
export interface RunTokenHolder {
  readonly runId: string;
  readonly executionId: string;
  readonly teamId: string;
  /** Id of the run's model, as the contract names it; `runbook` has no provider. */
  readonly modelId: string;
  /** The runs above it, parent first. */
  readonly ancestorIds: readonly string[];
  readonly creator: RunActor;
  readonly executor: RunActor;
  readonly environmentId: string | null;
  /** The automation that started the run or a run above it. */
  readonly automationUid: string | null;
  /** The factory whose definition the run executes. */
  readonly factoryUid: string | null;
}

/** One request of a run to a model; it is reported once, at its end. */
export interface ModelUsage extends RunTokenHolder {
  readonly provider: ProviderName;
  /** UUID of this request. */
  readonly requestId: string;
  /** Tokens that were neither read from nor written to a cache: no token counts twice. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** US dollars; null: the price is not known. An interrupted request costs at least this amount. */
  readonly costUsd: number | null;
  readonly breakdown: Cost | null;
  /** US dollars for the provider's own tools, a part of `costUsd`. */
  readonly toolsUsd: number;
  /** Amount that counts against budgets, US dollars: the cost, or an upper bound if a part of the cost is unknown. */
  readonly chargedUsd: number;
  /** True: the request counts as a turn, because the provider answered, or received the request but had no time to answer. */
  readonly isAnswer: boolean;
  /** HTTP status that the sandbox received; 502 if the provider ended a stream early, 499 if the client did. */
  readonly status: number;
  readonly durationMs: number;
}

/** Tokens, tool calls and status of one request. */
export interface Used {
  readonly tokens: TokenCounts;
  readonly tools: ToolCalls;
  readonly isAnswer: boolean;
  readonly status: number;
}

/** Returns the usage of a request to `target`. */
export function usageOf(
  holder: RunTokenHolder,
  target: ModelTarget,
  requestId: string,
  { tokens, tools, isAnswer, status }: Used,
  durationMs: number,
): ModelUsage {
  const toolsUsd = costOfTools(target.provider, tools);
  const breakdown = costOf(tokens, target.price);
  return {
    runId: holder.runId,
    executionId: holder.executionId,
    teamId: holder.teamId,
    ancestorIds: holder.ancestorIds,
    creator: holder.creator,
    executor: holder.executor,
    environmentId: holder.environmentId,
    automationUid: holder.automationUid,
    factoryUid: holder.factoryUid,
    modelId: target.id,
    provider: target.provider,
    requestId,
    inputTokens: tokens.input,
    outputTokens: tokens.output,
    cacheReadTokens: tokens.cacheRead,
    cacheWriteTokens: tokens.cacheWrite,
    costUsd: breakdown === null ? null : totalOf(breakdown) + toolsUsd,
    breakdown,
    toolsUsd,
    chargedUsd: chargeOf(tokens, target.price) + toolsUsd,
    isAnswer,
    status,
    durationMs: Math.round(durationMs),
  };
}
