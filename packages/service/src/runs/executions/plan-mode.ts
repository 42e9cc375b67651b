import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../platform/store/database/statement.ts';

/**
 * The mode of the turn in progress is the mode of the last follow-up that the agent took. An answer has the mode of the turn that asked.
 * Before the first turn, a follow-up without a mode joins the run's prompt, which keeps its mode. A continuation does not plan again.
 */
const isPlanningNow = `coalesce(
      (SELECT coalesce(f.mode, f.request->>'mode', 'normal') FROM followups f
       WHERE f.run_id = r.id AND f.execution_id = e.id AND (f.mode IS NOT NULL OR f.request->>'mode' IS NOT NULL OR f.taken_at >= e.started_at)
       ORDER BY f.position DESC LIMIT 1),
      CASE WHEN e.continues IS NULL THEN r.mode END) IS NOT DISTINCT FROM 'plan'`;

/** SQL: the last turn of the execution of the run `r` has the mode `plan`. */
export const isPlanOf = (executionId: string): string =>
  `(SELECT ${isPlanningNow} FROM executions e WHERE e.id = ${executionId})`;

const readPlanning = defineStatement({
  name: 'is_turn_in_mode_plan',
  text: `
    SELECT ${isPlanningNow} AS is_planning
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: { is_planning: boolean },
});

/** Returns whether the turn in progress of an execution has the mode `plan`, in which the agent changes nothing. */
export async function isPlanning(db: Queryable, executionId: string): Promise<boolean> {
  const [row] = await db.query(readPlanning, [executionId]);
  return row?.is_planning === true;
}

const readReadOnly = defineStatement({
  name: 'read_why_repositories_stay',
  text: `
    SELECT ${isPlanningNow} AS is_planning, q.comparison_commits IS NOT NULL AS is_comparison
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id WHERE e.id = $1`,
  row: { is_planning: boolean, is_comparison: boolean },
});

/** Returns why the execution may change no repository at its code host at this moment; undefined: it may. */
export async function whyRepositoriesStay(db: Queryable, executionId: string): Promise<string | undefined> {
  const [row] = await db.query(readReadOnly, [executionId]);
  if (row?.is_comparison) return 'the run was made for a comparison, which changes no repository';
  return row?.is_planning ? 'this turn has the mode plan, in which nothing may change' : undefined;
}
