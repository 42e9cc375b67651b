/**
 * Returns SQL of a common table expression that adds events to a conversation. `relation` names a relation of the events with
 * `run_id`, `seq` and `event`; `executionId` is the parameter with the execution that reported them.
 */
export const insertConversationEvents = (relation: string, executionId: string, where: string): string => `
      INSERT INTO conversation_events (run_id, seq, execution_id, event)
      SELECT run_id, seq, ${executionId}, event FROM ${relation} WHERE ${where}`;
