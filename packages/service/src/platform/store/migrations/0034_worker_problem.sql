-- Why the worker takes no new runs, as the worker reports it. NULL: it takes runs.
ALTER TABLE worker_connections ADD COLUMN problem text;
