-- The cancel of a run ends the runs that it started, and those that they started.

-- When someone asked for this launch: by the creation of the run or by a follow-up. A retry keeps it. A constant for the
-- rows that are there, so that the table is not rewritten; no cancel of theirs is waiting to reach others.
ALTER TABLE executions ADD COLUMN wanted_at timestamptz NOT NULL DEFAULT '-infinity';
ALTER TABLE executions ALTER COLUMN wanted_at SET DEFAULT clock_timestamp();

-- Time of the cancel, while descendants that were wanted before it may still be live; NULL: there are none.
ALTER TABLE runs ADD COLUMN cascade_at timestamptz;
CREATE INDEX runs_cascade ON runs (cascade_at) WHERE cascade_at IS NOT NULL;
