-- Environments tell who made them and who changed them last.

ALTER TABLE environments
  -- Null: it was made before this was kept.
  ADD COLUMN creator_kind text CHECK (creator_kind IN ('user', 'service_account')),
  ADD COLUMN creator_uid text,
  ADD COLUMN last_editor_kind text CHECK (last_editor_kind IN ('user', 'service_account')),
  ADD COLUMN last_editor_uid text,
  -- It is read from the latest run.
  DROP COLUMN setup_failed;

-- Paths of files are relative to the workspace of their run.
UPDATE artifacts
SET data = jsonb_set(data, '{filepath}',
  to_jsonb(coalesce(nullif(regexp_replace(data->>'filepath', '^/+(workspace/+)?', ''), ''), data->>'filename')))
WHERE artifact_type = 'FILE' AND data->>'filepath' LIKE '/%' AND data->>'filename' IS NOT NULL;
