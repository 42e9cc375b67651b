-- Schedules: prompts that become runs at fixed times. And the starts of schedules and automations.

CREATE TABLE schedules (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  -- The automation whose trigger has these times: each fire starts a run of the automation. NULL: a schedule of the team. The members of
  -- the request and the overlap policy of a trigger are those of the automation.
  automation_uid text REFERENCES automations ON DELETE CASCADE,
  -- Name of the schedule in the automation, by which a change of the automation finds it again. '': it has none.
  trigger_name text,
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
  -- The process that moves this time forward fires, in the same transaction. NULL while paused.
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
  -- The runs act as the person or service account that created or last replaced the schedule.
  editor_kind text NOT NULL CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text NOT NULL,
  -- The person of a personal schedule; NULL: it is the team's.
  user_uid text,
  -- In content_revisions. A trigger sets it. 0: a schedule of an automation, whose content is the automation's.
  revision integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CHECK (enabled = (next_run_at IS NOT NULL)),
  CHECK (user_uid = editor_uid),
  CONSTRAINT schedules_of_trigger CHECK ((automation_uid IS NULL) = (trigger_name IS NULL)),
  CONSTRAINT schedules_once_per_trigger UNIQUE (automation_uid, trigger_name)
);
CREATE INDEX schedules_by_name ON schedules (team_id, name COLLATE "C", id);
CREATE INDEX schedules_due_of_team ON schedules (team_id, next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE FUNCTION revise_schedule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('schedule', NEW.id::text, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'prompt', NEW.prompt, 'agent_config', NEW.agent_config, 'agent_uid', NEW.agent_uid, 'mode', NEW.mode, 'metadata', NEW.metadata,
    -- The person of a personal schedule.
    'owner', NEW.user_uid));
  RETURN NEW;
END $$;
CREATE TRIGGER revise_schedule BEFORE INSERT OR UPDATE OF prompt, agent_config, agent_uid, mode, metadata ON schedules
  FOR EACH ROW WHEN (NEW.automation_uid IS NULL) EXECUTE FUNCTION revise_schedule();
CREATE FUNCTION end_schedule_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = 'schedule' AND c.uid = gone.id::text AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER end_schedule_revisions AFTER DELETE ON schedules REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_schedule_revisions();

-- The starts of runs: one row for each time of a schedule, each start by hand, and each delivery that an automation matches.
CREATE TABLE starts (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  -- The schedule whose time it is, or that was started by hand. NULL: a delivery, or the schedule of the automation was deleted.
  schedule_id uuid REFERENCES schedules ON DELETE CASCADE,
  -- The automation whose run it is. NULL: a schedule of the team.
  automation_uid text REFERENCES automations ON DELETE CASCADE,
  -- The time of the schedule. NULL: started by hand, or a delivery.
  due_at timestamptz,
  -- No foreign keys: the log of a webhook and runs are deleted on their own.
  webhook_uid text,
  delivery_id uuid,
  -- Hash of the value of the concurrency key. NULL: the automation or the payload has none.
  lane text,
  fired_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome text NOT NULL CHECK (outcome IN ('started', 'skipped', 'waiting', 'failed')),
  run_id uuid CHECK ((outcome = 'started') = (run_id IS NOT NULL)),
  reason text,
  -- The person or agent key that started it by hand.
  starter_kind text CHECK (starter_kind IN ('user', 'service_account')),
  starter_uid text,
  -- True until the runs that the policy cancel_previous cancels for this one have ended.
  cancels_previous boolean NOT NULL DEFAULT false,
  CHECK (schedule_id IS NOT NULL OR automation_uid IS NOT NULL),
  CHECK ((webhook_uid IS NULL) = (delivery_id IS NULL)),
  CHECK (delivery_id IS NULL OR (automation_uid IS NOT NULL AND schedule_id IS NULL))
);
-- One start for each time, and for each delivery of an automation, even if several processes try.
CREATE UNIQUE INDEX starts_once_per_time ON starts (schedule_id, due_at) WHERE schedule_id IS NOT NULL;
CREATE UNIQUE INDEX starts_once_per_delivery ON starts (automation_uid, delivery_id) WHERE automation_uid IS NOT NULL;
CREATE INDEX starts_log ON starts (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX starts_run ON starts (run_id) WHERE automation_uid IS NOT NULL AND run_id IS NOT NULL;
-- The last start of an automation, and its starts of a day by outcome.
CREATE INDEX starts_automation ON starts (automation_uid, id) INCLUDE (outcome) WHERE automation_uid IS NOT NULL;
CREATE INDEX starts_waiting ON starts ((coalesce(automation_uid, schedule_id::text)), id) WHERE outcome = 'waiting';
CREATE INDEX starts_cancelling ON starts (id) WHERE cancels_previous;
