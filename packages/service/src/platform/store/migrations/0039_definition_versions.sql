-- Versions of definitions, variables, keys that only plan definitions, and starts by the tasks of factories.

ALTER TABLE factory_definitions
  -- Values that the last apply was given for the variables of the definition: {name: text, number or boolean}.
  ADD COLUMN variables jsonb NOT NULL DEFAULT '{}';

-- The versions of the definition of each factory. The last 100 are kept.
CREATE TABLE factory_definition_versions (
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  version integer NOT NULL,
  -- The files as they were applied: [{path, content}]. NULL: they are too large to be kept.
  files jsonb,
  file_bytes integer NOT NULL,
  variables jsonb NOT NULL DEFAULT '{}',
  -- The person who applied it.
  applied_by_uid text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The commit that the files are from; NULL: they were not applied from a repository.
  commit_id text,
  -- The earlier version whose files were applied again; NULL: no rollback.
  rolled_back_to integer,
  PRIMARY KEY (factory_uid, version)
);
INSERT INTO factory_definition_versions (factory_uid, version, files, file_bytes, applied_by_uid, applied_at, commit_id)
  SELECT factory_uid, version, CASE WHEN bytes <= 4194304 THEN files END, bytes, applied_by_uid, applied_at, commit_id
  FROM factory_definitions CROSS JOIN LATERAL (
    SELECT coalesce(sum(octet_length(f->>'content')), 0)::integer AS bytes FROM jsonb_array_elements(files) f) size;

ALTER TABLE factories
  -- As the definition declares them; NULL: it declares none.
  ADD COLUMN integrations jsonb,
  ADD COLUMN credential_strategy text CHECK (credential_strategy IN ('CREATOR', 'EXECUTOR'));

ALTER TABLE api_keys
  -- What an agent key is limited to; NULL: nothing.
  ADD COLUMN limited_to text CHECK (limited_to IS NULL OR (limited_to = 'definition_plans' AND kind = 'agent'));

ALTER TABLE starts
  -- The move of a task that started it: {factory_task_uid, title, from, to, changed_at, changed_by}. NULL: no move.
  ADD COLUMN task_move jsonb CHECK (task_move IS NULL OR (num_nulls(automation_uid) = 0 AND schedule_id IS NULL AND delivery_id IS NULL));
-- The starts of an automation by the moves of a task.
CREATE INDEX starts_of_tasks ON starts ((task_move->>'factory_task_uid'), automation_uid, id) WHERE task_move IS NOT NULL;
