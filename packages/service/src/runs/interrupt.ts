import type { Queryable, Statement } from '../store/database.ts';
import { runChannel } from './engine.ts';

const interrupt: Statement = {
  name: 'interrupt_turn',
  text: `
    UPDATE executions e SET interrupted_turn = e.finished_turns + 1 FROM runs r
    WHERE r.id = $1 AND e.id = r.current_execution_id AND r.state IN ('INPROGRESS', 'FAILED') AND e.phase = 'running'
    RETURNING pg_notify('${runChannel}', e.run_id::text)`,
};

const readBlocked: Statement = {
  name: 'is_blocked',
  text: "SELECT FROM runs WHERE id = $1 AND state = 'BLOCKED'",
};

/** `blocked` 400: it waits for an answer; `no_turn` 400. */
export type InterruptOutcome = 'interrupted' | 'blocked' | 'no_turn';

/** Asks the agent to end the turn that it plays; its sandbox stays. */
export async function interruptRun(db: Queryable, runId: string): Promise<InterruptOutcome> {
  if ((await db.query(interrupt, [runId])).length === 1) return 'interrupted';
  return (await db.query(readBlocked, [runId])).length === 1 ? 'blocked' : 'no_turn';
}
