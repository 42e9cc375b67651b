-- Automations of factories: prompts that become runs when a trigger fires.

CREATE TABLE automations (
  uid text PRIMARY KEY,
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  prompt text NOT NULL,
  enabled boolean NOT NULL,
  -- As they were requested: [{provider, event, filter, schedule}].
  triggers jsonb NOT NULL,
  -- Overrides of the factory's agent_defaults, an AmbientAgentConfig.
  config jsonb,
  overlap text NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_previous')),
  -- Field of the payload: overlap looks only at runs whose payload has the same value there.
  concurrency_key text,
  creator_kind text NOT NULL CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text NOT NULL,
  -- Its runs act as the one who created or last replaced it.
  editor_kind text NOT NULL CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (factory_uid, name)
);
CREATE INDEX automations_team ON automations (team_id);

-- Deliveries for which an automation started a run, or will.
CREATE TABLE automation_starts (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  automation_uid text NOT NULL REFERENCES automations ON DELETE CASCADE,
  -- No foreign keys: the log of a webhook and runs are deleted on their own.
  webhook_uid text NOT NULL,
  delivery_id uuid NOT NULL,
  -- Hash of the value of the concurrency key. NULL: the automation or the payload has none.
  lane text,
  -- NULL: it waits for the end of another run.
  run_id uuid,
  -- True until the runs that the policy cancel_previous cancels for this one have ended.
  cancels_previous boolean NOT NULL DEFAULT false,
  -- A delivery starts one run of an automation.
  UNIQUE (automation_uid, delivery_id)
);
CREATE INDEX automation_starts_run ON automation_starts (run_id);
CREATE INDEX automation_starts_waiting ON automation_starts (automation_uid, id) WHERE run_id IS NULL;
CREATE INDEX automation_starts_cancelling ON automation_starts (automation_uid, id) WHERE cancels_previous;
CREATE INDEX runs_live_by_automation ON runs ((metadata ->> 'automation_id'))
  WHERE source = 'WEBHOOK' AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED');
