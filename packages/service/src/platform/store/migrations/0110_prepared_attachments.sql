-- Files that are uploaded before the follow-up that names them. A follow-up moves its files to `attachments`.
CREATE TABLE prepared_attachments (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  created_by_kind text NOT NULL,
  created_by_uid text NOT NULL,
  file_name text NOT NULL,
  mime_type text NOT NULL,
  -- NULL until the bytes have arrived.
  blob_key text,
  size_bytes bigint,
  sha256 bytea,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX prepared_attachments_created ON prepared_attachments (created_at);
CREATE INDEX prepared_attachments_team ON prepared_attachments (team_id);
CREATE INDEX prepared_attachments_run ON prepared_attachments (run_id);
CREATE INDEX prepared_attachments_blob ON prepared_attachments (blob_key) WHERE blob_key IS NOT NULL;
