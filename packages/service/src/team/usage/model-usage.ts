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

/** The execution to which a run token belongs, and the run of this execution. */
export interface RunTokenHolder {
  readonly runId: string;
  readonly executionId: string;
  readonly teamId: string;
  /** Id of the run's model, as the contract names it; `runbook` has no provider. */
  readonly modelId: string;
  /** Ids of the run's ancestors, the parent first. */
  readonly ancestorIds: readonly string[];
  readonly creator: RunActor;
  readonly executor: RunActor;
  readonly environmentId: string | null;
  /** The automation that started the run or one of its ancestors. */
  readonly automationUid: string | null;
  /** The factory whose definition the run executes. */
  readonly factoryUid: string | null;
}

/** One request of a run to a model. It is recorded only once, at its end. */
export interface ModelUsage extends RunTokenHolder {
  readonly provider: ProviderName;
  /** UUID of this request. */
  readonly requestId: string;
  /** Number of input tokens that were neither read from a cache nor written to a cache. So no token counts twice. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** Cost in US dollars; null if the price is not known. The real cost of an interrupted request may be higher. */
  readonly costUsd: number | null;
  readonly breakdown: Cost | null;
  /** Cost of the provider's own tools in US dollars. It is a part of `costUsd`. */
  readonly toolsUsd: number;
  /** Amount in US dollars that counts against budgets: the cost, or an upper bound of the cost if a part of it is unknown. */
  readonly chargedUsd: number;
  /** True if the request counts as a turn. It does if the provider answered, or received the request but had no time to answer. */
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
