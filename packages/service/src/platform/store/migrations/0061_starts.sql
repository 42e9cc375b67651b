-- The starts of schedules and automations in one table: one row for each time of a schedule, each start by hand, and each delivery that
-- an automation matches. It replaces schedule_fires and automation_starts.
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

-- A waiting start of a fire whose history was deleted waits for nothing.
INSERT INTO starts (id, schedule_id, automation_uid, due_at, lane, fired_at, outcome, run_id, reason, starter_kind, starter_uid,
    cancels_previous)
  SELECT f.id, f.schedule_id, s.automation_uid, f.due_at, a.lane, f.fired_at, f.outcome, f.run_id, f.reason, f.starter_kind, f.starter_uid,
    f.cancels_previous OR coalesce(a.cancels_previous, false)
  FROM schedule_fires f JOIN schedules s ON s.id = f.schedule_id LEFT JOIN automation_starts a ON a.fire_id = f.id;
INSERT INTO starts (id, automation_uid, webhook_uid, delivery_id, lane, fired_at, outcome, run_id, cancels_previous)
  SELECT a.id, a.automation_uid, a.webhook_uid, a.delivery_id, a.lane,
    to_timestamp(('x' || left(replace(a.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0),
    CASE WHEN a.run_id IS NULL THEN 'waiting' ELSE 'started' END, a.run_id, a.cancels_previous
  FROM automation_starts a
  WHERE a.delivery_id IS NOT NULL
    OR (a.run_id IS NOT NULL AND NOT EXISTS (SELECT FROM schedule_fires f WHERE f.id = a.fire_id));
DROP TABLE schedule_fires;
DROP TABLE automation_starts;

-- One start for each time, and for each delivery of an automation, whatever the processes do.
CREATE UNIQUE INDEX starts_once_per_time ON starts (schedule_id, due_at) WHERE schedule_id IS NOT NULL;
CREATE UNIQUE INDEX starts_once_per_delivery ON starts (automation_uid, delivery_id) WHERE automation_uid IS NOT NULL;
CREATE INDEX starts_log ON starts (schedule_id, id) WHERE schedule_id IS NOT NULL;
CREATE INDEX starts_run ON starts (run_id) WHERE automation_uid IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX starts_waiting ON starts ((coalesce(automation_uid, schedule_id::text)), id) WHERE outcome = 'waiting';
CREATE INDEX starts_cancelling ON starts (id) WHERE cancels_previous;
