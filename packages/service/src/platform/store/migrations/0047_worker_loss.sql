-- Checkpoints of workspace and home in the middle of a turn, and runs that resume a turn whose machine was lost.

-- The last checkpoint that the agent began: its number, the number in runs.event_seq that the conversation had reached, and the
-- commands of a runbook that were done.
ALTER TABLE executions ADD COLUMN checkpoint integer;
ALTER TABLE executions ADD COLUMN checkpoint_seq bigint;
ALTER TABLE executions ADD COLUMN checkpoint_done integer NOT NULL DEFAULT 0;

-- The kept workspace has the effects of the run's events up to this number. NULL: kept by an older version.
ALTER TABLE executions ADD COLUMN workspace_seq bigint;
-- True: as in the middle of the turn `workspace_turn`.
ALTER TABLE executions ADD COLUMN workspace_is_checkpoint boolean NOT NULL DEFAULT false;
ALTER TABLE executions ADD COLUMN workspace_done integer NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN workspace_at timestamptz;

-- Number of the earlier execution whose lost turn this one resumes; NULL: none.
ALTER TABLE executions ADD COLUMN resumes integer;
-- How often the turn was resumed before this launch.
ALTER TABLE executions ADD COLUMN resume_count integer NOT NULL DEFAULT 0;
-- How the machine of that turn was lost.
ALTER TABLE executions ADD COLUMN loss_message text;
