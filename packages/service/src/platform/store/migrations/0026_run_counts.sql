-- For GET /agent/runs/counts: counts the runs of a time from the index alone. A change of a run writes all indexes of its row, because each
-- has its last change, so the new columns cost no further writes.
DROP INDEX runs_created;
CREATE INDEX runs_created ON runs (team_id, created_at, id) INCLUDE (state, parent_run_id);
