import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../platform/store/database/statement.ts';

/**
 * The mode of the turn in progress is the mode of the last follow-up that the agent took. An answer has the mode of the turn that asked.
 * Before the first turn, a follow-up without a mode joins the run's prompt, which keeps its mode. A continuation does not plan again.
 */
const readPlanning = defineStatement({
  name: 'is_turn_in_mode_plan',
  text: `
    SELECT coalesce(
      (SELECT coalesce(f.mode, f.request->>'mode', 'normal') FROM followups f
       WHERE f.run_id = r.id AND f.execution_id = e.id AND (f.mode IS NOT NULL OR f.request->>'mode' IS NOT NULL OR f.taken_at >= e.started_at)
       ORDER BY f.position DESC LIMIT 1),
      CASE WHEN e.continues IS NULL THEN r.mode END) IS NOT DISTINCT FROM 'plan' AS is_planning
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: { is_planning: boolean },
});

/** Returns whether the turn in progress of an execution has the mode `plan`, in which the agent changes nothing. */
export async function isPlanning(db: Queryable, executionId: string): Promise<boolean> {
  const [row] = await db.query(readPlanning, [executionId]);
  return row?.is_planning === true;
}

/** Reason for refusing a change in a turn with the mode `plan`. */
export const planChangesNothing = 'this turn has the mode plan, which changes nothing';
