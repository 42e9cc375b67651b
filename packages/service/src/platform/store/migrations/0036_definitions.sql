-- The agents of factories, and the files that define factories.

CREATE TABLE factory_agents (
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  name text NOT NULL,
  agent_type text NOT NULL CHECK (agent_type IN ('CUSTOM', 'FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY')),
  description text,
  -- Instructions in front of every prompt.
  prompt text NOT NULL DEFAULT '',
  -- What replaces the defaults of the factory, an AmbientAgentConfig.
  config jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (factory_uid, name)
);
CREATE UNIQUE INDEX factory_agents_foreman ON factory_agents (factory_uid) WHERE agent_type = 'FOREMAN';

INSERT INTO factory_agents (factory_uid, name, agent_type) SELECT uid, 'foreman', 'FOREMAN' FROM factories;

CREATE TABLE factory_definitions (
  factory_uid text PRIMARY KEY REFERENCES factories ON DELETE CASCADE,
  -- Grows by one with each apply.
  version integer NOT NULL,
  -- The files as they were applied: [{path, content}].
  files jsonb NOT NULL,
  -- UIDs of what the files define, by kind and name: {webhooks: {name: uid}, automations: {name: uid}}.
  uids jsonb NOT NULL,
  -- The person who applied it.
  applied_by_uid text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
