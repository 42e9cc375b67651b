-- Failed runs that "rerun failed" has repeated, so that each is repeated once.
CREATE TABLE failed_reruns (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  rerun_id uuid NOT NULL
);
