-- What a sandbox leaves to the next one of its run.
ALTER TABLE executions
  -- Workspace and home as of the end of this turn. With a turn and no blob: there was nothing in them.
  ADD COLUMN workspace_turn integer,
  ADD COLUMN workspace_blob text,
  ADD COLUMN workspace_bytes bigint,
  ADD COLUMN workspace_sha256 bytea,
  -- Until when the upload of it may put off the end of the sandbox.
  ADD COLUMN keeping_until timestamptz;
-- To find the row that a blob belongs to.
CREATE INDEX executions_workspace_blob ON executions (workspace_blob) WHERE workspace_blob IS NOT NULL;
