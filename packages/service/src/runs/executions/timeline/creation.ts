/** Number of the timeline event that every run begins with. */
export const creationSeq = 1;

/**
 * Returns the SQL of a common table expression that writes the first timeline event of each new run. `relation` names a
 * relation of the runs with the columns `id` and `creation`, the payload (null: none).
 */
export const insertCreationEvents = (relation: string): string => `
  INSERT INTO run_events (run_id, seq, event_type, state, execution_number, payload)
  SELECT r.id, ${creationSeq}, 'oz_run_created', 'QUEUED', 1, r.creation FROM ${relation} r`;
