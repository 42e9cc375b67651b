-- Runs that repeat other runs. The other run may have been deleted.
ALTER TABLE runs ADD COLUMN retry_of uuid, ADD COLUMN rerun_of uuid;

-- Failures of runs that a new run repeats. A run is repeated once: its retry may be repeated again.
CREATE TABLE run_retries (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  due_at timestamptz NOT NULL,
  -- When the retry was created, or was given up; NULL: it waits.
  handled_at timestamptz
);
CREATE INDEX run_retries_due ON run_retries (due_at) WHERE handled_at IS NULL;
