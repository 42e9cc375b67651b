-- Less work for each new run. Of new rows, these columns are empty, and an index over all rows has an entry for each of them.

ALTER TABLE executions DROP CONSTRAINT executions_token_hash_key;
CREATE UNIQUE INDEX executions_token ON executions (token_hash) WHERE token_hash IS NOT NULL;

-- Only starts by schedules have a fire. A fire starts one run.
ALTER TABLE automation_starts DROP CONSTRAINT automation_starts_fire;
CREATE UNIQUE INDEX automation_starts_fire ON automation_starts (fire_id) WHERE fire_id IS NOT NULL;
