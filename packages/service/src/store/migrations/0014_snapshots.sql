-- What a sandbox hands to whoever goes on with its work elsewhere.
CREATE TABLE snapshots (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  turn integer NOT NULL,
  -- All its bytes have arrived; then it is the only one of its execution.
  is_ready boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX snapshots_run ON snapshots (run_id);
CREATE INDEX snapshots_execution ON snapshots (execution_id);
CREATE INDEX snapshots_not_ready ON snapshots (created_at) WHERE NOT is_ready;

CREATE TABLE snapshot_files (
  id uuid PRIMARY KEY,
  snapshot_id uuid NOT NULL REFERENCES snapshots ON DELETE CASCADE,
  position integer NOT NULL,
  filename text NOT NULL,
  mime_type text,
  size_bytes bigint NOT NULL,
  sha256 bytea,
  blob_key text,
  UNIQUE (snapshot_id, position)
);
-- To find the row that a blob belongs to.
CREATE INDEX snapshot_files_blob ON snapshot_files (blob_key) WHERE blob_key IS NOT NULL;
