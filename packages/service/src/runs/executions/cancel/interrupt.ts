import type { RunState } from '@runyard/contract/runs/states';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { type Author, recordAction } from '../../../team/access/audit/record.ts';
import { runChannel } from '../channels.ts';

/** Ends a wait for other runs: a frozen command could not end. */
const interrupt = defineStatement({
  name: 'interrupt_turn',
  text: `
    UPDATE executions e SET interrupted_turn = e.finished_turns + 1, awaiting_until = NULL FROM runs r
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

/** Asks the agent to end the turn in progress, and records who asked. The sandbox stays. */
export async function interruptRun(db: Database, runId: string, by: Author): Promise<InterruptOutcome> {
  return await db.transaction(async (tx) => {
    if ((await tx.query(interrupt, [runId])).length === 0) return await whyNot(tx, runId);
    await recordAction(tx, by, { action: 'run.interrupt', subject: { type: 'run', uid: runId } });
    return 'interrupted';
  });
}

/** Returns why the run has no turn to interrupt. */
async function whyNot(tx: Queryable, runId: string): Promise<Exclude<InterruptOutcome, 'interrupted'>> {
  const [asking] = await tx.query(readAsking, [runId]);
  if (!asking) return 'no_turn';
  return asking.state === 'BLOCKED' ? 'blocked' : 'asks';
}
