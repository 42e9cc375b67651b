-- The commits at which a run's repositories were cloned. The agent reports them before its harness gets the first prompt.
CREATE TABLE base_commits (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  commits jsonb NOT NULL
);

-- Runs that each run one check of another run in a fresh sandbox.
CREATE TABLE fresh_checks (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  -- The turn of the checked run, and the number of the round of checks in this turn.
  execution_id uuid NOT NULL,
  turn integer NOT NULL,
  attempt integer NOT NULL,
  name text NOT NULL,
  -- The stored changes of the checked run.
  snapshot_id uuid NOT NULL,
  -- The check as the configuration of the checked run had it, and the commits on which it runs.
  trusted_paths jsonb NOT NULL,
  base_commits jsonb NOT NULL,
  UNIQUE (execution_id, turn, attempt, name)
);
