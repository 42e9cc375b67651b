-- Agents start runs, wait for them and write to other runs of their tree.

ALTER TABLE executions
  -- Ancestors of the run. Deeper ones are handed out first: those above may wait for them.
  ADD COLUMN depth smallint NOT NULL DEFAULT 0,
  -- Until then its agent does nothing but wait for other runs and holds no slot; renewed by each of its calls.
  ADD COLUMN awaiting_until timestamptz;
UPDATE executions SET depth = cardinality(runs.ancestor_ids) FROM runs
  WHERE runs.id = executions.run_id AND executions.phase <> 'ended' AND runs.ancestor_ids <> '{}';
DROP INDEX executions_queue;
CREATE INDEX executions_queue ON executions (pool, team_id, depth DESC, available_at, id) WHERE phase = 'queued';

-- `run`: the agent of another run of the tree wrote it; the uid is that run's id.
ALTER TABLE followups DROP CONSTRAINT followups_created_by_kind_check;
ALTER TABLE followups ADD CONSTRAINT followups_created_by_kind_check CHECK (created_by_kind IN ('user', 'service_account', 'run'));
-- How many a run wrote in the last minute.
CREATE INDEX followups_from_run ON followups (created_by_uid, created_at) WHERE created_by_kind = 'run';
