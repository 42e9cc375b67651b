-- Retention: background work that one of the service processes does once in a while.

-- One row for each kind of sweep. A process that claims the row does the work; the others skip it.
CREATE TABLE sweeps (
  name text PRIMARY KEY,
  next_at timestamptz NOT NULL,
  claimed_by uuid,
  -- Renewed during the sweep. The claim of a process that died expires.
  claimed_until timestamptz,
  finished_at timestamptz,
  result jsonb
);

-- One row: the last run whose small events were merged (conversation_events.from_seq). Runs are taken in the order of their end.
CREATE TABLE event_merges (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  ended_at timestamptz NOT NULL,
  run_id uuid NOT NULL
);
