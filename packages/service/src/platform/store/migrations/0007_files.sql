-- Files of runs. Their bytes are blobs or, if small, in the row; executions has the columns of saved workspaces.

-- Files that a client sent with a run or with a follow-up. No foreign key to runs, for the same reason as in executions.
CREATE TABLE attachments (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL,
  -- NULL: the file was sent with the run.
  followup_id uuid REFERENCES followups ON DELETE CASCADE,
  -- Order within the request.
  position integer NOT NULL,
  file_name text NOT NULL,
  mime_type text NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 bytea NOT NULL,
  -- The bytes of a small file, because a blob costs two flushes of the disk and a row none of its own; NULL: the bytes are a blob.
  content bytea,
  blob_key text,
  CONSTRAINT attachments_bytes_are_in_one_place CHECK ((content IS NULL) <> (blob_key IS NULL))
);
CREATE INDEX attachments_run ON attachments (run_id, position);
CREATE INDEX attachments_followup ON attachments (followup_id, position) WHERE followup_id IS NOT NULL;
-- Finds the row that a blob belongs to.
CREATE INDEX attachments_blob ON attachments (blob_key) WHERE blob_key IS NOT NULL;

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
-- Finds the row that a blob belongs to.
CREATE INDEX prepared_attachments_blob ON prepared_attachments (blob_key) WHERE blob_key IS NOT NULL;

-- Results that an agent reported.
CREATE TABLE artifacts (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL,
  conversation_id uuid NOT NULL,
  artifact_type text NOT NULL CHECK (artifact_type IN ('PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE')),
  -- Members depend on the type. Paths of files are relative to the workspace of the run.
  data jsonb NOT NULL,
  -- Readers see an artifact with bytes only after all its bytes have arrived.
  is_ready boolean NOT NULL,
  is_public boolean NOT NULL DEFAULT false,
  blob_key text,
  size_bytes bigint,
  sha256 bytea,
  canonical_url text,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX artifacts_run ON artifacts (run_id, created_at, id);
CREATE INDEX artifacts_url ON artifacts (team_id, canonical_url) WHERE canonical_url IS NOT NULL;
-- Finds artifacts that were reported and whose bytes never arrived.
CREATE INDEX artifacts_not_ready ON artifacts (created_at) WHERE NOT is_ready;
-- Finds the row that a blob belongs to.
CREATE INDEX artifacts_blob ON artifacts (blob_key) WHERE blob_key IS NOT NULL;

-- Keeps the artifact types of a run in run_facets. It locks the run's row first: so the hour does not change meanwhile, and of
-- artifacts that are added and deleted at the same time none is missed.
CREATE FUNCTION index_run_artifacts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  run runs;
BEGIN
  SELECT * INTO run FROM runs WHERE id = coalesce(NEW.run_id, OLD.run_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_ready THEN
    INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
    VALUES (run.id, 'artifact:' || NEW.artifact_type, run.team_id, run_hour(run.updated_at)) ON CONFLICT DO NOTHING;
  ELSIF TG_OP = 'DELETE' AND NOT EXISTS (
    SELECT FROM artifacts WHERE run_id = OLD.run_id AND artifact_type = OLD.artifact_type AND is_ready) THEN
    DELETE FROM run_facets WHERE run_id = OLD.run_id AND facet = 'artifact:' || OLD.artifact_type;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER index_run_artifacts AFTER INSERT OR DELETE OR UPDATE OF is_ready ON artifacts
  FOR EACH ROW EXECUTE FUNCTION index_run_artifacts();

-- Handoffs: the changes that a sandbox leaves to a person or to another run that continues its work.
CREATE TABLE snapshots (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  turn integer NOT NULL,
  -- All bytes have arrived. An execution has at most one that is ready: a newer one replaces it.
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
  -- NULL until the bytes have arrived.
  sha256 bytea,
  blob_key text,
  UNIQUE (snapshot_id, position)
);
-- Finds the row that a blob belongs to.
CREATE INDEX snapshot_files_blob ON snapshot_files (blob_key) WHERE blob_key IS NOT NULL;

-- Uploads in progress. The primary key bounds them over all service processes: each name is one upload slot of a sandbox, so
-- that the uploads of one sandbox cannot fill the disk.
CREATE TABLE upload_leases (
  name text PRIMARY KEY,
  holder uuid NOT NULL,
  -- Renewed during the upload. The lease of a process that died expires.
  expires_at timestamptz NOT NULL
);
CREATE INDEX upload_leases_by_end ON upload_leases (expires_at);

-- Changed files of the git repositories of a run: the last report of its sandbox, and the last request for one.
CREATE TABLE run_changes (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  -- Number of the requests so far. The agent gets each over its inbox.
  asked integer NOT NULL DEFAULT 0,
  asked_at timestamptz,
  reported_at timestamptz,
  -- The repositories as JSON, compressed with gzip; NULL: none were reported, or retention deleted them.
  content bytea
);
