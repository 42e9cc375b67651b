-- The report of the process about itself: version, machine, free disk, and the parts that do not work. NULL: there is no report yet.
ALTER TABLE service_instances ADD COLUMN report jsonb;

-- Workers of the hosted pool that were connected and are gone. The row of a worker that is connected again does not count.
CREATE TABLE gone_workers (
  worker_id text PRIMARY KEY,
  gone_at timestamptz NOT NULL DEFAULT now(),
  -- True: it had announced its end.
  was_draining boolean NOT NULL,
  version text
);
