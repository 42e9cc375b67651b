-- Conversations and raw transcripts.

-- Reports of agents, in order, with secrets redacted. Readers compose the conversation from them.
CREATE TABLE conversation_events (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- From runs.event_seq.
  seq bigint NOT NULL,
  -- Retention merges small events of ended runs (docs/decisions/live-streams.md): `from_seq` is the first of the merged
  -- numbers, `seq` the last. NULL: the event is as it was reported.
  from_seq bigint,
  execution_id uuid NOT NULL,
  event jsonb NOT NULL,
  PRIMARY KEY (run_id, seq)
);

-- Lines of the raw transcript of executions that have not ended. Later they are composed into executions.transcript_blob.
CREATE TABLE transcript_chunks (
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  -- Number of the agent's event that carried the lines.
  agent_seq bigint NOT NULL,
  lines text NOT NULL,
  PRIMARY KEY (execution_id, agent_seq)
);

-- One row: the last run whose small events were merged (conversation_events.from_seq). Runs are taken in the order of their end.
CREATE TABLE event_merges (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  ended_at timestamptz NOT NULL,
  run_id uuid NOT NULL
);
