import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, json, text } from '../../platform/store/database/statement.ts';

/** Names the inputs of the statement that adds events to a conversation. */
interface InsertedEvents {
  /** SQL relation of the new events, with the columns `run_id`, `seq` and `event`. */
  readonly relation: string;
  /** SQL condition: selects the rows of `relation` to add. */
  readonly where: string;
  /** Parameter with the execution whose agent reported the events. */
  readonly executionId: string;
}

/** Returns SQL of a common table expression that adds events to the conversations of their runs. */
export const insertConversationEvents = ({ relation, where, executionId }: InsertedEvents): string => `
      INSERT INTO conversation_events (run_id, seq, execution_id, event)
      SELECT run_id, seq, ${executionId}, event FROM ${relation} WHERE ${where}`;

/** Reads only the last events of the run, because a run can have very many events. */
const readLastStep = defineStatement({
  name: 'read_last_step_of_conversation',
  text: `
    SELECT event->>'step_id' AS step_id FROM (
      SELECT seq, event FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 10000
    ) last WHERE event ? 'step_id' ORDER BY seq DESC LIMIT 1`,
  row: { step_id: text() },
});

/** Returns the id of the newest step of the conversation; undefined if none of the last events belongs to a step. */
export async function readLastStepId(db: Queryable, runId: string): Promise<string | undefined> {
  const [row] = await db.query(readLastStep, [runId]);
  return row?.step_id;
}

const readLastPlanOf = defineStatement({
  name: 'read_last_plan_of_conversation',
  text: `
    SELECT event->'data' AS plan FROM (
      SELECT seq, event FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 10000
    ) last WHERE event->>'type' = 'notice' AND event->>'name' = 'plan' ORDER BY seq DESC LIMIT 1`,
  row: { plan: json<unknown>() },
});

/** Returns the newest plan that the harness has shown, in the form of the Agent Client Protocol; undefined if there is none. */
export async function readLastPlan(db: Queryable, runId: string): Promise<unknown> {
  return (await db.query(readLastPlanOf, [runId]))[0]?.plan;
}
