-- Agent identities: service accounts with the settings of their runs.

CREATE TABLE agent_identities (
  -- Id in the API.
  uid text PRIMARY KEY CHECK (uid ~ '^[A-Za-z0-9]{22}$'),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  -- Model and environment of runs of the identity that name none.
  base_model text,
  environment_id text,
  skills text[] NOT NULL DEFAULT '{}',
  -- Names of secrets.
  secrets text[] NOT NULL DEFAULT '{}',
  -- The agent keys of the identity may create runs for a person.
  on_behalf_of_enabled boolean NOT NULL DEFAULT false,
  -- Members of an AmbientAgentConfig: base_prompt, harness, mcp_servers, worker_host.
  config jsonb NOT NULL DEFAULT '{}',
  editor_kind text CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text,
  -- In content_revisions. A trigger sets it.
  revision integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX agent_identities_team ON agent_identities (team_id, created_at, uid);

-- Adds the members of `config` to the content only if they are set: an identity without them keeps its revision, which people may have
-- accepted.
CREATE FUNCTION revise_agent_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('agent_identity', NEW.uid, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'description', NEW.description, 'base_model', NEW.base_model, 'environment_id', NEW.environment_id,
    'skills', NEW.skills, 'secrets', NEW.secrets, 'on_behalf_of_enabled', NEW.on_behalf_of_enabled) || NEW.config);
  RETURN NEW;
END $$;
CREATE TRIGGER revise_agent_identity BEFORE INSERT OR UPDATE ON agent_identities FOR EACH ROW EXECUTE FUNCTION revise_agent_identity();
CREATE TRIGGER end_agent_identity_revisions AFTER DELETE ON agent_identities REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('agent_identity');
