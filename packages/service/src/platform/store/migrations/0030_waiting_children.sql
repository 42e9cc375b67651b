-- True: the run of the queued execution waits until fewer runs of its parent are live than child_runs.max_live of the parent allows.
ALTER TABLE executions ADD COLUMN waits_for_place boolean NOT NULL DEFAULT false;
CREATE INDEX executions_waiting_for_place ON executions (run_id) WHERE waits_for_place;
