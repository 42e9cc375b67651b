import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable } from '../../../platform/store/database/statement.ts';
import { type TeamBudgetState, teamBudgetState } from '../../../team/usage/budget/team-budget.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { isOfPool, servesPool } from '../../executions/pools/serves-pool.ts';
import { holdsSlot } from '../../executions/queue/holds-slot.ts';
import type { NewRun } from './new-run.ts';

/**
 * `at_capacity`: a run would have to wait, because the team's limit is reached, or no connected worker of the pool has a free slot. The
 * other members show what the team may still spend.
 */
const readCapacity = defineStatement({
  name: 'read_at_capacity',
  text: `
    SELECT (SELECT count(*) FROM executions e WHERE e.team_id = $1 AND ${holdsSlot('e')}) >= t.max_concurrent_executions
      OR coalesce((SELECT sum(coalesce(slots, 1000)) FROM worker_connections
                   WHERE NOT draining AND ${servesPool('worker_connections', '$2', '$1')}), 0)
         <= (SELECT count(*) FROM executions e WHERE ${isOfPool('e', '$2', '$1')} AND ${holdsSlot('e')}) AS at_capacity,
      ${teamBudgetState('$1')}
    FROM teams t WHERE t.id = $1`,
  row: {
    at_capacity: nullable(boolean),
    is_out_of_credits: boolean,
    is_month_spent: boolean,
    is_limited: boolean,
  },
});

const maxAgeMs = 1000;
const maxRemembered = 10_000;
/** By team and pool. */
type Answers = Map<string, { readonly readAt: number; readonly value: Promise<TeamState> }>;
const answersOf = new WeakMap<ExecutionDeps, Answers>();

/** Whether a new run of a team would have to wait, and what the team may still spend. */
export interface TeamState extends TeamBudgetState {
  readonly at_capacity: boolean | null;
}

const noState: TeamState = { at_capacity: false, is_out_of_credits: false, is_month_spent: false, is_limited: false };

/**
 * Returns whether a run would have to wait, and what its team may spend. The answer is at most a second old. That is enough: the first
 * fact is only a hint for the caller, and each request to a model is checked against the budgets again. `tx`: the transaction of the
 * caller, if it has one.
 */
export async function readTeamState(
  deps: ExecutionDeps,
  tx: Queryable | undefined,
  { teamId, workerHost = '' }: Pick<NewRun, 'teamId' | 'workerHost'>,
): Promise<TeamState> {
  const key = `${teamId} ${workerHost}`;
  const known: Answers = answersOf.get(deps) ?? new Map();
  answersOf.set(deps, known);
  const last = known.get(key);
  if (last && performance.now() - last.readAt < maxAgeMs) return await last.value;
  const remember = (value: Promise<TeamState>) => {
    if (known.size >= maxRemembered) known.clear();
    const answer = { readAt: performance.now(), value };
    known.set(key, answer);
    value.catch(() => known.get(key) === answer && known.delete(key));
  };
  const value = (tx ?? deps.db).query(readCapacity, [teamId, workerHost]).then((rows) => rows[0] ?? noState);
  // A read in a transaction is shared only after it has ended: it may fail with the transaction or wait for a lock, and callers outside of
  // the transaction must do neither.
  if (tx === undefined) remember(value);
  else await value.then((state) => remember(Promise.resolve(state)));
  return await value;
}
