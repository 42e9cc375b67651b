-- Prompt, harness, MCP servers and worker of an agent identity, and the UIDs of the agents of factories.

ALTER TABLE agent_identities
  -- Members of an AmbientAgentConfig: base_prompt, harness, mcp_servers, worker_host.
  ADD COLUMN config jsonb NOT NULL DEFAULT '{}';

-- Identities without these members keep their revisions, so that what people have accepted stays accepted.
CREATE OR REPLACE FUNCTION revise_agent_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('agent_identity', NEW.uid, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'description', NEW.description, 'base_model', NEW.base_model, 'environment_id', NEW.environment_id,
    'skills', NEW.skills, 'secrets', NEW.secrets, 'on_behalf_of_enabled', NEW.on_behalf_of_enabled) || NEW.config);
  RETURN NEW;
END $$;

-- 22 characters, as the UIDs of identities. An agent keeps it as long as the definition has its name.
ALTER TABLE factory_agents ADD COLUMN uid text NOT NULL
  GENERATED ALWAYS AS (left(encode(sha256((factory_uid || '/' || name)::bytea), 'hex'), 22)) STORED UNIQUE;
