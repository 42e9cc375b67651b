-- Schedule triggers of automations, the agents of automations, and their pause after failures.

-- The automation whose trigger has these times: each fire starts a run of the automation. NULL: a schedule of the team. Of a trigger,
-- the members of the request and the overlap policy are those of the automation.
ALTER TABLE schedules ADD COLUMN automation_uid text REFERENCES automations ON DELETE CASCADE;
-- Name of the schedule in the automation, by which a change of the automation finds it again. Empty: it has none.
ALTER TABLE schedules ADD COLUMN trigger_name text;
ALTER TABLE schedules
  ADD CONSTRAINT schedules_of_trigger CHECK ((automation_uid IS NULL) = (trigger_name IS NULL)),
  ADD CONSTRAINT schedules_once_per_trigger UNIQUE (automation_uid, trigger_name);

-- Agent of the factory that gets the runs. NULL: the foreman. No foreign key: an automation without its agent stays, and says so.
ALTER TABLE automations ADD COLUMN agent text;
-- Why the last run could not be created, and how many in a row could not.
ALTER TABLE automations ADD COLUMN last_spawn_error text;
ALTER TABLE automations ADD COLUMN spawn_failures integer NOT NULL DEFAULT 0;

-- A start is for a delivery, or for a fire of a schedule trigger. No foreign key: the history is deleted on its own.
ALTER TABLE automation_starts ADD COLUMN fire_id uuid;
ALTER TABLE automation_starts
  ALTER COLUMN webhook_uid DROP NOT NULL,
  ALTER COLUMN delivery_id DROP NOT NULL,
  ADD CONSTRAINT automation_starts_event CHECK ((fire_id IS NULL) = (delivery_id IS NOT NULL)),
  -- A fire starts one run.
  ADD CONSTRAINT automation_starts_fire UNIQUE (fire_id);

DROP INDEX runs_live_by_automation;
CREATE INDEX runs_live_by_automation ON runs ((metadata ->> 'automation_id'))
  WHERE source IN ('WEBHOOK', 'SCHEDULED_AGENT') AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED');
