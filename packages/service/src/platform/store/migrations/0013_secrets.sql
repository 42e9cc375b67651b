-- Secrets that runs use. The values are sealed by the vault (secrets/vault.ts).

CREATE TABLE stored_secrets (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The person whose secret it is; NULL: it belongs to the team.
  owner_uid text REFERENCES users (uid) ON DELETE CASCADE,
  name text NOT NULL COLLATE "C",
  -- The vault key that sealed the value.
  vault_key_id text NOT NULL,
  sealed_value bytea NOT NULL,
  -- Service accounts whose runs may name a secret of the team.
  agent_uids text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  -- When a sandbox last got the value.
  last_used_at timestamptz
);
CREATE UNIQUE INDEX stored_secrets_team_name ON stored_secrets (team_id, name) WHERE owner_uid IS NULL;
CREATE UNIQUE INDEX stored_secrets_owner_name ON stored_secrets (team_id, owner_uid, name) WHERE owner_uid IS NOT NULL;
CREATE INDEX stored_secrets_vault_key ON stored_secrets (vault_key_id);
CREATE INDEX stored_secrets_owner ON stored_secrets (owner_uid) WHERE owner_uid IS NOT NULL;
-- Lists the secrets of a team with those of its people.
CREATE INDEX stored_secrets_team ON stored_secrets (team_id, name);

-- A sealed copy of each value that a sandbox of the run got, or that the gateway adds for it. The service looks for these values in the
-- output of the run, also after the secret was changed or deleted.
CREATE TABLE run_secrets (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  name text NOT NULL,
  -- granted: a stored secret by this name. configured: another value in the sandbox. withheld: it never reaches the sandbox.
  kind text NOT NULL CHECK (kind IN ('granted', 'configured', 'withheld')),
  vault_key_id text NOT NULL,
  sealed_value bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX run_secrets_run ON run_secrets (run_id, id);
CREATE INDEX run_secrets_vault_key ON run_secrets (vault_key_id);
