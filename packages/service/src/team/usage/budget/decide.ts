/** Decides whether a request to a model fits into the budgets that it uses. */

/** One limit that a request counts against. `run_cost` and `run_turns` are of the run `runId` and all runs below it. */
export interface Budget {
  readonly kind: 'run_cost' | 'run_turns' | 'team_month' | 'team_credits';
  /** Absent for a budget of a team. */
  readonly runId?: string;
  /** US dollars, or answers. */
  readonly limit: number;
  /** Amount of the requests that are accounted for. */
  readonly used: number;
  /** Amount of the open requests: their largest cost, or their number. */
  readonly reserved: number;
}

export type BudgetDecision =
  | { readonly kind: 'admit' }
  /** Another request must be accounted for first. */
  | { readonly kind: 'wait' }
  | { readonly kind: 'over'; readonly budget: Budget }
  /** A budget in dollars cannot be kept, because the model's price is not known. */
  | { readonly kind: 'unpriced'; readonly budget: Budget };

/**
 * Decides about a request that costs at most `mostUsd`; null if its price is unknown. Requests that fit together are admitted together.
 * Near the end of a budget in dollars, a run has only one request in progress, so that each run overspends by at most one model answer.
 * Turns are never overspent.
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
