import type { Queryable, Statement } from '../store/database.ts';
import { runChannel } from './engine.ts';

const interrupt: Statement = {
  name: 'interrupt_turn',
  text: `
    UPDATE executions e SET interrupted_turn = e.finished_turns + 1 FROM runs r
    WHERE r.id = $1 AND e.id = r.current_execution_id AND r.state = 'INPROGRESS' AND e.phase = 'running'
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
};

/** Asks the agent to end the turn that it plays; its sandbox stays. False: it plays none. */
export async function interruptRun(db: Queryable, runId: string): Promise<boolean> {
  return (await db.query(interrupt, [runId])).length === 1;
}
