-- The last message and the result of each run. The agent submits a result during a turn; it becomes the result of the run when the turn
-- ends. Results are `json` and not `jsonb`, because people read the members in the order in which the agent wrote them.
CREATE TABLE run_results (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  final_message text,
  result json,
  artifact_id uuid,
  submitted json,
  submitted_artifact_id uuid,
  submitted_execution_id uuid,
  submitted_turn integer
);
