-- Factories: their agents, the files and repositories that define them, and their tasks.

CREATE TABLE factories (
  uid text PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  alias text,
  -- Repositories that the agents work on: [{owner, repo}].
  repositories jsonb NOT NULL DEFAULT '[]',
  -- Configuration of runs, an AmbientAgentConfig.
  agent_defaults jsonb NOT NULL DEFAULT '{}',
  -- Revision of the definition (agent_defaults, agents and skills) in content_revisions.
  revision integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX factories_team ON factories (team_id, uid);
CREATE UNIQUE INDEX factories_alias ON factories (team_id, alias);

CREATE TABLE factory_agents (
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  name text NOT NULL,
  -- 22 characters, as the UIDs of agent identities. An agent keeps it as long as the definition has its name.
  uid text NOT NULL
    GENERATED ALWAYS AS (left(encode(sha256((factory_uid || '/' || name)::bytea), 'hex'), 22)) STORED UNIQUE,
  agent_type text NOT NULL CHECK (agent_type IN ('CUSTOM', 'FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY')),
  description text,
  -- Instructions in front of every prompt.
  prompt text NOT NULL DEFAULT '',
  -- Overrides of the factory's agent_defaults, an AmbientAgentConfig.
  config jsonb NOT NULL DEFAULT '{}',
  PRIMARY KEY (factory_uid, name)
);
CREATE UNIQUE INDEX factory_agents_foreman ON factory_agents (factory_uid) WHERE agent_type = 'FOREMAN';

-- The files that define a factory.
CREATE TABLE factory_definitions (
  factory_uid text PRIMARY KEY REFERENCES factories ON DELETE CASCADE,
  -- Grows by one with each apply.
  version integer NOT NULL,
  -- The files as they were applied: [{path, content}].
  files jsonb NOT NULL,
  -- UIDs of the webhooks and automations that the files define, by kind and name: {webhooks: {name: uid}, automations: {name: uid}}.
  uids jsonb NOT NULL,
  -- The person who applied it.
  applied_by_uid text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The commit that the files are from; NULL: they were not applied from a repository.
  commit_id text
);

-- Writes the revision of the definition of a factory, and returns its number. The statements that change the definition call it.
CREATE FUNCTION revise_definition(f factories, author_kind text, author_uid text) RETURNS integer LANGUAGE sql AS $$
  SELECT write_revision('definition', f.uid, f.team_id, author_kind, author_uid, jsonb_build_object(
    'agent_defaults', f.agent_defaults,
    'agents', (SELECT coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'prompt', a.prompt, 'config', a.config) ORDER BY a.name), '[]')
      FROM factory_agents a WHERE a.factory_uid = f.uid),
    'skills', (SELECT coalesce(jsonb_agg(s), '[]') FROM factory_definitions d, jsonb_array_elements(d.files) s
      WHERE d.factory_uid = f.uid AND s->>'path' ~ '^(agents/[^/]+/)?skills/')))
$$;
CREATE TRIGGER end_definition_revisions AFTER DELETE ON factories REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('definition');

-- The repositories that factories take their definitions from.
CREATE TABLE factory_sources (
  factory_uid text PRIMARY KEY REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- Repository on the code host of the service.
  owner text NOT NULL,
  repo text NOT NULL,
  -- NULL: the default branch.
  branch text,
  -- '': the root of the repository.
  folder text NOT NULL,
  poll_interval_seconds integer NOT NULL,
  -- The person as whom the definitions are read and applied.
  set_by_uid text NOT NULL,
  set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Time of the next sync. A push brings it forward.
  due_at timestamptz NOT NULL,
  -- The sync in progress: it can store results only while the row has its claim. The claim of a killed process expires.
  claim uuid,
  claimed_at timestamptz,
  claimed_until timestamptz,
  checked_at timestamptz,
  -- The last commit of this source that was applied.
  applied_commit text,
  -- The last sync that applied a commit or failed.
  last_outcome text CHECK (last_outcome IN ('applied', 'faulty', 'unreadable', 'not_allowed', 'failed')),
  last_at timestamptz,
  last_commit text,
  last_message text,
  -- [{path, line, column, message, suggestion?}], at most 100.
  last_faults jsonb,
  -- Address of the repository at the last sync, after redirects: host and path, in lower case. NULL: it was not read yet.
  found_at text
);
CREATE INDEX factory_sources_due ON factory_sources (due_at);
CREATE INDEX factory_sources_team ON factory_sources (team_id);
-- Find the factories that follow the repository of a push.
CREATE INDEX factory_sources_by_repository ON factory_sources (regexp_replace(lower(owner || '/' || repo), '(\.git)+$', ''));
CREATE INDEX factory_sources_by_place ON factory_sources (found_at) WHERE found_at IS NOT NULL;

-- Tasks of factories: title and stage of the conversation that works on each. State and outputs of a task are those of its runs.
CREATE TABLE factory_tasks (
  uid text COLLATE "C" PRIMARY KEY,
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  conversation_id uuid NOT NULL UNIQUE,
  -- Newest run of the conversation when the task was created. It may have been deleted.
  run_id uuid NOT NULL,
  title text NOT NULL,
  description text,
  stage text NOT NULL CHECK (stage IN ('TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'COMPLETE', 'CANCELLED')),
  -- When the stage was last written: a later cancel of the run overrides it.
  stage_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX factory_tasks_created ON factory_tasks (factory_uid, created_at, uid);
CREATE INDEX factory_tasks_team ON factory_tasks (team_id);
