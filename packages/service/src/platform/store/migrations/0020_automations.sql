-- Automations of factories: prompts that become runs when a trigger fires.

CREATE TABLE automations (
  uid text PRIMARY KEY,
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  prompt text NOT NULL,
  -- Agent of the factory that gets the runs; NULL: the foreman. No foreign key: an automation stays without its agent, and reports it.
  agent text,
  enabled boolean NOT NULL,
  -- As they were requested: [{provider, event, filter, schedule}].
  triggers jsonb NOT NULL,
  -- Overrides of the factory's agent_defaults, an AmbientAgentConfig.
  config jsonb,
  overlap text NOT NULL CHECK (overlap IN ('allow', 'skip', 'queue', 'cancel_previous')),
  -- Field of the payload: the overlap policy looks only at runs whose payload has the same value in it.
  concurrency_key text,
  -- Why the last run could not be created, and how many in a row could not.
  last_spawn_error text,
  spawn_failures integer NOT NULL DEFAULT 0,
  creator_kind text NOT NULL CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text NOT NULL,
  -- The runs act as the person or service account that created or last replaced the automation.
  editor_kind text NOT NULL CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text NOT NULL,
  -- In content_revisions. A trigger sets it.
  revision integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  UNIQUE (factory_uid, name)
);
CREATE INDEX automations_team ON automations (team_id);

CREATE FUNCTION revise_automation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('automation', NEW.uid, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'prompt', NEW.prompt, 'agent', NEW.agent, 'triggers', NEW.triggers, 'config', NEW.config));
  RETURN NEW;
END $$;
CREATE TRIGGER revise_automation BEFORE INSERT OR UPDATE OF name, prompt, agent, triggers, config ON automations
  FOR EACH ROW EXECUTE FUNCTION revise_automation();
CREATE TRIGGER end_automation_revisions AFTER DELETE ON automations REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('automation');
