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
