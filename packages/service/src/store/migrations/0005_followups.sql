-- Messages that continue a run, and sandboxes that wait for one.

-- idle: its turn has ended, its agent waits in its sandbox for a follow-up and holds no slot.
ALTER TABLE executions DROP CONSTRAINT executions_phase_check;
ALTER TABLE executions ADD CONSTRAINT executions_phase_check
  CHECK (phase IN ('queued', 'assigned', 'claimed', 'running', 'idle', 'stopping', 'ended'));

ALTER TABLE executions
  -- Until when the sandbox waits while it is idle.
  ADD COLUMN idle_until timestamptz,
  -- Time between turns, which is not run time.
  ADD COLUMN idle_seconds double precision NOT NULL DEFAULT 0,
  -- Turns whose end its agent reported: a report that comes twice counts once.
  ADD COLUMN finished_turns integer NOT NULL DEFAULT 0,
  -- The turn that someone asked to end.
  ADD COLUMN interrupted_turn integer,
  -- Number of the execution after which it goes on with the conversation; NULL: it begins with the run's prompt.
  ADD COLUMN continues integer,
  -- The harness's own memory of the conversation, as of the end of its turn `memory_turn`.
  ADD COLUMN memory_blob text,
  ADD COLUMN memory_turn integer;
CREATE INDEX executions_idle ON executions (idle_until) WHERE phase = 'idle';
-- To find the row that a blob belongs to.
CREATE INDEX executions_memory_blob ON executions (memory_blob) WHERE memory_blob IS NOT NULL;

CREATE TABLE followups (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- Order within the run: given under the run's row lock.
  position bigint GENERATED ALWAYS AS IDENTITY,
  message text NOT NULL,
  mode text CHECK (mode IN ('normal', 'plan', 'orchestrate')),
  created_by_kind text NOT NULL CHECK (created_by_kind IN ('user', 'service_account')),
  created_by_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The execution whose agent took it; NULL: it waits.
  execution_id uuid,
  taken_at timestamptz,
  CHECK ((execution_id IS NULL) = (taken_at IS NULL))
);
CREATE INDEX followups_run ON followups (run_id, position);
CREATE INDEX followups_waiting ON followups (run_id, position) WHERE execution_id IS NULL;
