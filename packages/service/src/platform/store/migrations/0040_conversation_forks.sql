-- Forks and titles of conversations.

-- The beginning of a forked conversation: the runs of the conversation that was forked, oldest first by their creation.
CREATE TABLE forked_runs (
  -- The new conversation.
  conversation_id uuid NOT NULL,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- Number of the last event of the run that the new conversation has.
  up_to bigint NOT NULL,
  PRIMARY KEY (conversation_id, run_id)
);
CREATE INDEX forked_runs_run ON forked_runs (run_id);

CREATE TABLE conversation_titles (
  conversation_id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  title text NOT NULL
);
