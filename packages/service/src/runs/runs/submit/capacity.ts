import { brieflyKnown } from '../../../platform/store/database/briefly-known.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable } from '../../../platform/store/database/statement.ts';
import { type TeamBudgetState, teamBudgetState } from '../../../team/usage/budget/team-budget.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { holdsSlot, isOfPool, servesPool } from '../../executions/queue/may-take.ts';
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

/** Whether a new run of a team would have to wait, and what the team may still spend. */
export interface TeamState extends TeamBudgetState {
  readonly at_capacity: boolean | null;
}

const noState: TeamState = { at_capacity: false, is_out_of_credits: false, is_month_spent: false, is_limited: false };

const readState = brieflyKnown<ExecutionDeps, TeamState>(
  1000,
  async (db, teamId, pool) => (await db.query(readCapacity, [teamId, pool]))[0] ?? noState,
);

/**
 * Returns whether a run would have to wait, and what its team may spend. The answer is at most a second old. That is enough: the first
 * fact is only a hint for the caller, and each request to a model is checked against the budgets again. `tx`: the transaction of the
 * caller, if it has one.
 */
export const readTeamState = (
  deps: ExecutionDeps,
  tx: Queryable | undefined,
  { teamId, workerHost = '' }: Pick<NewRun, 'teamId' | 'workerHost'>,
): Promise<TeamState> => readState(deps, tx, teamId, workerHost);
