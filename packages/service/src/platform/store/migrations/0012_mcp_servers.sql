-- MCP servers that a team has stored, for runs to name by their id.

CREATE TABLE mcp_servers (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  -- Exactly one of the two: a program inside the sandbox, or an address that only the service reaches.
  command text,
  url text,
  args jsonb NOT NULL DEFAULT '[]',
  -- Names of the variables of the command, or of the headers for the address.
  value_names text[] NOT NULL DEFAULT '{}',
  -- Their values, sealed together by the vault key vault_key_id (secrets/vault.ts).
  vault_key_id text NOT NULL,
  sealed_values bytea NOT NULL,
  -- How often people have replaced the values. Revisions have this number instead of the values, which are sealed.
  values_number integer NOT NULL DEFAULT 1,
  editor_kind text CHECK (editor_kind IN ('user', 'service_account')),
  editor_uid text,
  -- Revision of the command in content_revisions. A trigger sets it. 0: the server has an address.
  revision integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT mcp_servers_one_kind CHECK ((command IS NULL) <> (url IS NULL))
);
CREATE INDEX mcp_servers_team ON mcp_servers (team_id, id);

-- A server with a command is content: the program runs in the sandbox, beside the secrets of the run.
CREATE FUNCTION revise_mcp_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('mcp_server', NEW.id::text, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'command', NEW.command, 'args', NEW.args, 'env_names', NEW.value_names, 'env_number', NEW.values_number));
  RETURN NEW;
END $$;
CREATE TRIGGER revise_mcp_server BEFORE INSERT OR UPDATE OF command, args, value_names, values_number ON mcp_servers
  FOR EACH ROW WHEN (NEW.command IS NOT NULL) EXECUTE FUNCTION revise_mcp_server();
CREATE FUNCTION end_mcp_server_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = 'mcp_server' AND c.uid = gone.id::text AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER end_mcp_server_revisions AFTER DELETE ON mcp_servers REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_mcp_server_revisions();
