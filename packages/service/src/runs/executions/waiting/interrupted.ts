import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { endWait } from '../idle/idle.ts';

/**
 * SQL: a person interrupted the last turn of the run `r`, and the agent of its current execution `e` waits in the sandbox for a
 * message. The timeline says whether the agent ended the turn because of the interrupt: a turn may end by itself before it.
 */
export const waitsAfterInterrupt = (r: string, e: string): string => `
  ${r}.state = 'SUCCEEDED' AND ${e}.phase = 'idle' AND ${e}.interrupted_turn = ${e}.finished_turns
  AND (SELECT v.payload->>'interrupted' = 'true' FROM run_events v
    WHERE v.run_id = ${r}.id AND v.event_type = 'oz_run_done' ORDER BY v.seq DESC LIMIT 1)`;

const findWaiting = defineStatement({
  name: 'find_wait_after_interrupt',
  text: `
    SELECT FROM runs r JOIN executions e ON e.id = r.current_execution_id
    WHERE r.id = $1 AND ${waitsAfterInterrupt('r', 'e')}`,
  row: {},
});

/**
 * Ends the sandbox of a run whose turn was interrupted, if its agent waits there for a message. The state of the run stays. The
 * transaction has locked the run's row. Returns false if no agent waits in this way.
 */
export async function endInterruptedWait(tx: Queryable, runId: string, leaveSeconds: number): Promise<boolean> {
  if ((await tx.query(findWaiting, [runId])).length === 0) return false;
  await endWait(tx, runId, leaveSeconds);
  return true;
}
