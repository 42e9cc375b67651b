import type { RunAgentResponse } from '@runyard/contract/run-request';
import {
  type Attempt,
  isClientAttempt,
  once,
  onceWithin,
  type RepeatableRequest,
} from '../../../platform/idempotency/once.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { unpricedMessage } from '../../../team/usage/budget/admit.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { type ChildRefusal, refuseChild } from '../tree/admit-child.ts';
import { readTeamState, type TeamState } from './capacity.ts';
import { insertInBatch, insertRuns, type RunBatch } from './insert-runs.ts';
import type { NewRun } from './new-run.ts';

/** Outcome of a create. */
export type CreateOutcome =
  | { readonly kind: 'created'; readonly response: RunAgentResponse }
  /** The same request was answered before. This is the answer. */
  | { readonly kind: 'replayed'; readonly response: RunAgentResponse }
  | { readonly kind: 'idempotency_conflict' }
  | { readonly kind: 'refused'; readonly reason: ChildRefusal }
  | BudgetRefusal;

/** 403: the team may not spend more. */
export interface BudgetRefusal {
  readonly kind: 'over_budget';
  readonly code: 'budget_exceeded' | 'insufficient_credits';
  readonly detail: string;
}

/** Returns why the team's budget does not admit the run; null: it does. */
function refusedByBudget(team: TeamState, { unpricedId }: NewRun): BudgetRefusal | null {
  const raise = 'An administrator can raise it with PATCH /budget.';
  if (team.is_out_of_credits)
    return { kind: 'over_budget', code: 'insufficient_credits', detail: `The team has no credits left. ${raise}` };
  if (team.is_month_spent)
    return { kind: 'over_budget', code: 'budget_exceeded', detail: `The team has spent its monthly limit. ${raise}` };
  return unpricedId !== undefined && team.is_limited
    ? { kind: 'over_budget', code: 'budget_exceeded', detail: unpricedMessage(unpricedId) }
    : null;
}

/** Returns why the budget of the team does not admit the run now; null: it does. */
export const findBudgetRefusal = async (deps: ExecutionDeps, run: NewRun): Promise<BudgetRefusal | null> =>
  refusedByBudget(await readTeamState(deps, undefined, run), run);

/** Options of a create: the request that its sender may repeat, and the caller's transaction. */
export interface CreateOptions {
  readonly once?: RepeatableRequest | undefined;
  readonly tx?: Queryable | undefined;
  readonly batch?: RunBatch | undefined;
}

/**
 * Creates the run with its first execution queued, its attachments and its idempotency key: all or nothing, in the
 * caller's transaction where one is given.
 */
export async function createRun(
  deps: ExecutionDeps,
  run: NewRun,
  { once: request, tx: callers, batch }: CreateOptions = {},
): Promise<CreateOutcome> {
  const team = await readTeamState(deps, callers, run);
  const overBudget = refusedByBudget(team, run);
  if (overBudget) return overBudget;
  const at_capacity = team.at_capacity ?? false;
  const response: RunAgentResponse = { run_id: run.id, task_id: run.id, state: 'QUEUED', at_capacity };
  const { parentRunId, ancestorIds, childLimits } = run;
  const isFirst = !request || (isClientAttempt(request) && request.attempt === 0);
  if (!callers && isFirst && run.attachments.length === 0 && parentRunId === undefined) {
    const isWritten = await insertInBatch(deps, { run, ...(request ? { answerOf: { request, response } } : {}) });
    return isWritten ? { kind: 'created', response } : { kind: 'idempotency_conflict' };
  }
  const work = async (tx: Queryable): Promise<Attempt<RunAgentResponse, ChildRefusal>> => {
    if (parentRunId !== undefined) {
      const reason = await refuseChild(tx, { parentRunId, ancestorIds }, childLimits);
      if (reason) return { kind: 'failed', failure: reason };
    }
    if (batch) batch.push(run);
    else await insertRuns(tx, [run]);
    return { kind: 'done', response };
  };
  const attempt = callers ? await onceWithin(callers, request, work) : await once(deps.db, request, work);
  if (attempt.kind === 'conflict') return { kind: 'idempotency_conflict' };
  if (attempt.kind === 'failed') return { kind: 'refused', reason: attempt.failure };
  return attempt.response.run_id === run.id
    ? { kind: 'created', response }
    : { kind: 'replayed', response: attempt.response };
}
