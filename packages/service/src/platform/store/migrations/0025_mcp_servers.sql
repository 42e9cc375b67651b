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
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT mcp_servers_one_kind CHECK ((command IS NULL) <> (url IS NULL))
);
CREATE INDEX mcp_servers_team ON mcp_servers (team_id, id);
