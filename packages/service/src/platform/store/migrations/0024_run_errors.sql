-- For the filter error_code of GET /agent/runs: the runs with a code, in the default order (0003_run_list.sql).
CREATE INDEX runs_by_error ON runs (team_id, error_code COLLATE "C", updated_at, id) WHERE error_code IS NOT NULL;
