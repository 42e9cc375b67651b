import type { RunState } from '@runyard/contract/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { runChannel } from '../channels.ts';

const interrupt = defineStatement({
  name: 'interrupt_turn',
  text: `
    UPDATE executions e SET interrupted_turn = e.finished_turns + 1 FROM runs r
    WHERE r.id = $1 AND e.id = r.current_execution_id AND r.state IN ('INPROGRESS', 'FAILED') AND e.phase = 'running'
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
  row: {},
});

const readAsking = defineStatement({
  name: 'read_whether_run_asks',
  text: `
    SELECT r.state FROM runs r JOIN executions e ON e.id = r.current_execution_id
    WHERE r.id = $1 AND (r.state = 'BLOCKED' OR r.state = 'FAILED' AND e.phase = 'idle' AND e.debug_request IS NOT NULL)`,
  row: { state: text<RunState>() },
});

/** `blocked` 400: the run waits for an answer; `asks` 400: the agent in the debug window does; `no_turn` 400: no turn is in progress. */
export type InterruptOutcome = 'interrupted' | 'blocked' | 'asks' | 'no_turn';

/** Asks the agent to end the turn in progress. The sandbox stays. */
export async function interruptRun(db: Queryable, runId: string): Promise<InterruptOutcome> {
  if ((await db.query(interrupt, [runId])).length === 1) return 'interrupted';
  const [asking] = await db.query(readAsking, [runId]);
  if (!asking) return 'no_turn';
  return asking.state === 'BLOCKED' ? 'blocked' : 'asks';
}
