-- Small events of ended runs are merged (docs/decisions/live-streams.md).

-- First of the numbers that were merged into this event, which has the last of them; NULL: it is as it was reported.
ALTER TABLE conversation_events ADD COLUMN from_seq bigint;

-- The last run that was looked at, in the order in which runs ended: one row.
CREATE TABLE event_merges (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  ended_at timestamptz NOT NULL,
  run_id uuid NOT NULL
);
