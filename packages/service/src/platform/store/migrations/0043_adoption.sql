-- How long sandboxes of the worker go on without it, so that its next process can adopt them; 0: they end with it.
ALTER TABLE worker_connections ADD COLUMN adopt_seconds integer NOT NULL DEFAULT 0;
