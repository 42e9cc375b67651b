-- Schedules: prompts that become runs at fixed times.

CREATE TABLE schedules (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  cron_schedule text NOT NULL,
  -- IANA name of the zone in which the fields are read.
  timezone text NOT NULL,
  -- The intervals of @every begin here.
  anchor_at timestamptz NOT NULL,
  -- The request for each run.
  prompt text NOT NULL,
  agent_config jsonb,
  agent_uid text,
  mode text,
  metadata jsonb NOT NULL DEFAULT '{}',
  overlap text NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_previous')),
  -- Runs that may be live at once. NULL: no limit for allow, 1 for the others.
  max_live_runs integer CHECK (max_live_runs > 0),
  enabled boolean NOT NULL,
  -- The process that moves it forward fires, in the same transaction. NULL while paused.
  next_run_at timestamptz,
  -- The time of the last fire. A database whose clock was set back does not repeat it.
  last_due_at timestamptz,
  -- When a run was last created.
  last_ran_at timestamptz,
  -- Why the last fire could not create its run, and how many in a row could not.
  last_spawn_error text,
  spawn_failures integer NOT NULL DEFAULT 0,
  creator_kind text NOT NULL CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text NOT NULL,
  -- Its runs act as the one who created or last replaced it.
  editor_kind text NOT NULL CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CHECK (enabled = (next_run_at IS NOT NULL))
);
CREATE INDEX schedules_by_name ON schedules (team_id, name COLLATE "C", id);
CREATE INDEX schedules_due_of_team ON schedules (team_id, next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE next_run_at IS NOT NULL;

-- The history: one row for each time at which a schedule fired, and for each start by hand.
CREATE TABLE schedule_fires (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  schedule_id uuid NOT NULL REFERENCES schedules ON DELETE CASCADE,
  -- The time of the schedule. NULL: started by hand.
  due_at timestamptz,
  fired_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome text NOT NULL CHECK (outcome IN ('started', 'skipped', 'waiting', 'failed')),
  -- No foreign key: runs are deleted on their own.
  run_id uuid CHECK ((outcome = 'started') = (run_id IS NOT NULL)),
  reason text,
  -- Who started it by hand.
  starter_kind text CHECK (starter_kind IN ('user', 'service_account')),
  starter_uid text,
  -- True until the runs that the policy cancel_previous cancels for this one have ended.
  cancels_previous boolean NOT NULL DEFAULT false,
  -- One fire for each time, whatever the processes do.
  UNIQUE (schedule_id, due_at)
);
CREATE INDEX schedule_fires_log ON schedule_fires (schedule_id, id);
CREATE INDEX schedule_fires_waiting ON schedule_fires (schedule_id, id) WHERE outcome = 'waiting';
CREATE INDEX schedule_fires_cancelling ON schedule_fires (schedule_id, id) WHERE cancels_previous;

-- The schedule as it was when it created the run: it may change and be deleted.
ALTER TABLE runs ADD COLUMN schedule_name text, ADD COLUMN schedule_cron text;
CREATE INDEX runs_live_by_schedule ON runs (schedule_id)
  WHERE schedule_id IS NOT NULL AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED');
