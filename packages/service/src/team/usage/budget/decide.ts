/** Decides whether a request to a model fits the budgets against which it counts. */

/** One limit against which a request counts. `run_cost` and `run_turns` are limits of the run `runId` together with all its descendants. */
export interface Budget {
  readonly kind: 'run_cost' | 'run_turns' | 'team_month' | 'team_credits';
  /** Absent for a budget of a team. */
  readonly runId?: string;
  /** The limit, in US dollars or in number of answers. */
  readonly limit: number;
  /** Amount that was used by requests whose usage is recorded. */
  readonly used: number;
  /** Amount that is reserved for open requests: their highest possible cost, or their number. */
  readonly reserved: number;
}

export type BudgetDecision =
  | { readonly kind: 'admit' }
  /** The request must wait until the usage of another request is recorded. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'over'; readonly budget: Budget }
  /** A budget in dollars cannot be enforced, because the price of the model is not known. */
  | { readonly kind: 'unpriced'; readonly budget: Budget };

/**
 * Decides about a request that costs at most `mostUsd`; `mostUsd` is null if the price is unknown. Requests that together fit the budgets
 * may be in progress at the same time. Near the end of a budget in dollars, a run has only one request in progress, so that each run
 * overspends by at most one model answer. Turns are never overspent.
 */
export function decide(
  budgets: readonly Budget[],
  request: { readonly mostUsd: number | null; readonly runHasOpenRequest: boolean },
): BudgetDecision {
  const over = budgets.find(({ used, limit }) => used >= limit);
  if (over) return { kind: 'over', budget: over };
  const turns = budgets.filter(({ kind }) => kind === 'run_turns');
  if (turns.some(({ used, reserved, limit }) => used + reserved >= limit)) return { kind: 'wait' };
  const costs = budgets.filter(({ kind }) => kind !== 'run_turns');
  const [first] = costs;
  if (!first) return { kind: 'admit' };
  const { mostUsd } = request;
  if (mostUsd === null) return { kind: 'unpriced', budget: first };
  const allFit = costs.every(({ used, reserved, limit }) => used + reserved + mostUsd <= limit);
  return allFit || !request.runHasOpenRequest ? { kind: 'admit' } : { kind: 'wait' };
}
