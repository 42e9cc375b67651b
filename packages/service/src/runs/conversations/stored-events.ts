import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';

/** Names the inputs of the statement that adds events to a conversation. */
interface InsertedEvents {
  /** Relation of the events with `run_id`, `seq` and `event`. */
  readonly relation: string;
  /** Condition that selects rows of the relation. */
  readonly where: string;
  /** Parameter with the execution whose agent reported the events. */
  readonly executionId: string;
}

/** Returns SQL of a common table expression that adds events to the conversations of their runs. */
export const insertConversationEvents = ({ relation, where, executionId }: InsertedEvents): string => `
      INSERT INTO conversation_events (run_id, seq, execution_id, event)
      SELECT run_id, seq, ${executionId}, event FROM ${relation} WHERE ${where}`;

/** Reads only the last events, because a run at its limit has very many. */
const readLastStep = defineStatement({
  name: 'read_last_step_of_conversation',
  text: `
    SELECT event->>'step_id' AS step_id FROM (
      SELECT seq, event FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 10000
    ) last WHERE event ? 'step_id' ORDER BY seq DESC LIMIT 1`,
  row: { step_id: text() },
});

/** Returns the id of the present step of the conversation; undefined if none of its last events has a step. */
export async function readLastStepId(db: Queryable, runId: string): Promise<string | undefined> {
  const [row] = await db.query(readLastStep, [runId]);
  return row?.step_id;
}
