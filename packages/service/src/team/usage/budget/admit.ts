import { setTimeout as sleep } from 'node:timers/promises';
import type { ErrorCode } from '@runyard/contract/wire/errors';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { ModelTarget } from '../../models/models.ts';
import { chargeOf, mostCost } from '../../models/price.ts';
import type { RunTokenHolder } from '../model-usage.ts';
import { type Budget, type BudgetDecision, decide } from './decide.ts';
import type { KnownUsage } from './lost-requests.ts';
import { lockBudgets, readLimits } from './read-budgets.ts';

/** Describes a request that is about to be sent to a model. */
export interface BudgetedRequest {
  /** UUID of the request. `recordUsage` later gets the same UUID. */
  readonly requestId: string;
  readonly target: ModelTarget;
  readonly bytes: number;
  /** Estimated number of tokens of the prompt, from the length of its text. */
  readonly promptTokens: number;
  /** Number of answers for which the request asks. */
  readonly answers: number;
  /** Is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Returns false if the run has ended since the request arrived. */
  isAtWork(): Promise<boolean>;
}

/**
 * `over`: the budget is used up, or cannot be enforced; `busy`: other requests of the run were not recorded in time; `ended`: the run ended
 * while the request waited.
 */
export type BudgetAdmission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'over'; readonly code: ErrorCode; readonly message: string }
  /**
   * The request asks for several answers although a limit applies. It is refused, because each answer costs as much as a separate request.
   */
  | { readonly kind: 'several_answers' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'ended' };

export interface AdmissionDeps {
  readonly db: Database;
  readonly serviceInstanceId: string;
  /** Default: 120,000. */
  readonly patienceMs?: number;
}

/** Assumed maximum numbers of tokens, if they are not known. No model of the catalogue returns longer answers or accepts longer prompts. */
const mostOutputTokens = 128_000;
const mostPromptTokens = 1_050_000;
const pauseMs = 200;

const openRequest = defineStatement({
  name: 'open_model_request',
  text: `
    INSERT INTO open_model_requests (id, run_id, execution_id, accounts, reserved_usd, known_usage, service_instance_id)
    VALUES ($1, $2, $3, $4::uuid[], $5, $6::jsonb, $7)`,
  row: {},
});

const usd = (amount: number): string => `$${Number(amount.toFixed(6))}`;

/** Returns a text that says which budget is used up, and what to do. */
function overMessage({ kind, runId, used, limit }: Budget, ownRunId: string): string {
  const whose = runId === ownRunId ? 'The run' : `The run ${runId}, an ancestor of this run,`;
  switch (kind) {
    case 'run_cost':
      return `${whose} has spent ${usd(used)} of its max_cost_usd of ${usd(limit)}. Create a run with a higher limit.`;
    case 'run_turns':
      return `${whose} has used its max_turns of ${limit} model answers. Create a run with a higher limit.`;
    case 'team_month':
      return `The team has spent ${usd(used)} of its monthly limit of ${usd(limit)}. An administrator can raise it with PATCH /budget.`;
    case 'team_credits':
      return 'The team has no credits left. An administrator can set them with PATCH /budget.';
  }
}

/** Returns the refusal of a request; null if the decision is not a refusal. */
function refusalOf(decision: BudgetDecision, holder: RunTokenHolder, { id }: ModelTarget): BudgetAdmission | null {
  if (decision.kind === 'over') {
    const code = decision.budget.kind === 'team_credits' ? 'insufficient_credits' : 'budget_exceeded';
    return { kind: 'over', code, message: overMessage(decision.budget, holder.runId) };
  }
  if (decision.kind !== 'unpriced') return null;
  return { kind: 'over', code: 'budget_exceeded', message: unpricedMessage(id) };
}

/** Returns a text that says why a model without a price cannot be used under a budget in dollars. */
export const unpricedMessage = (modelId: string): string =>
  `The price of the model ${modelId} is not known, so a budget in dollars cannot be kept. Use another model, or have an administrator set RUNYARD_UNKNOWN_MODEL_PRICE.`;

/**
 * Decides whether a request fits the budgets of its run, of the run's ancestors and of the team. If it fits, reserves its highest possible
 * cost until `recordUsage` records the real cost. Near the end of a budget, waits until other requests are recorded.
 */
export async function admitToBudgets(
  deps: AdmissionDeps,
  holder: RunTokenHolder,
  request: BudgetedRequest,
): Promise<BudgetAdmission> {
  const giveUpAt = performance.now() + (deps.patienceMs ?? 120_000);
  for (;;) {
    const decision = await tryAdmit(deps, holder, request);
    if (decision.kind === 'several_answers') return decision;
    if (decision.kind === 'admit') return { kind: 'admitted' };
    const refusal = refusalOf(decision, holder, request.target);
    if (refusal) return refusal;
    if (performance.now() > giveUpAt || request.signal.aborted) return { kind: 'busy' };
    await sleep(pauseMs, undefined, { signal: request.signal }).catch(() => undefined);
    if (!(await request.isAtWork())) return { kind: 'ended' };
  }
}

/** Copies only the needed members of the session, and not others such as the run token. */
const storable = (holder: RunTokenHolder): RunTokenHolder => ({
  runId: holder.runId,
  executionId: holder.executionId,
  teamId: holder.teamId,
  modelId: holder.modelId,
  ancestorIds: holder.ancestorIds,
  creator: { kind: holder.creator.kind, uid: holder.creator.uid },
  executor: { kind: holder.executor.kind, uid: holder.executor.uid },
  environmentId: holder.environmentId,
  automationUid: holder.automationUid,
  factoryUid: holder.factoryUid,
});

async function tryAdmit(
  { db, serviceInstanceId }: AdmissionDeps,
  holder: RunTokenHolder,
  { requestId, target, bytes, promptTokens, answers }: BudgetedRequest,
): Promise<BudgetDecision | { readonly kind: 'several_answers' }> {
  const limits = await readLimits(db, holder);
  if (!limits) return { kind: 'admit' };
  if (answers > 1) return { kind: 'several_answers' };
  const { price } = target;
  // The number of bytes is an upper bound for the number of tokens, because a token has at least one byte.
  const prompt = Math.min(bytes, mostPromptTokens);
  const mostUsd = price ? mostCost({ prompt, output: mostOutputTokens }, price) : null;
  return await db.transaction(async (tx) => {
    const state = await lockBudgets(tx, holder, limits);
    const decision = decide(state.budgets, { mostUsd, runHasOpenRequest: state.runHasOpenRequest });
    if (decision.kind !== 'admit') return decision;
    const tokens = { input: promptTokens, output: 0, cacheRead: 0, cacheWrite: 0, cacheWriteLong: 0 };
    const known: KnownUsage = {
      holder: storable({ ...holder, modelId: target.id }),
      provider: target.provider,
      promptTokens,
      chargedUsd: chargeOf(tokens, price),
    };
    const accounts = [holder.runId, ...holder.ancestorIds, holder.teamId];
    await tx.query(openRequest, [
      requestId,
      holder.runId,
      holder.executionId,
      accounts,
      mostUsd ?? 0,
      JSON.stringify(known),
      serviceInstanceId,
    ]);
    return decision;
  });
}
