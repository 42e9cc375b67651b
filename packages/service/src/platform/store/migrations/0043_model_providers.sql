-- Access to providers of models that owners stored. The settings of a service process have priority over a row.
CREATE TABLE model_providers (
  -- `anthropic`, `openai`, `google` or `local`.
  name text PRIMARY KEY,
  -- NULL: the base URL of the settings.
  base_url text,
  -- The API key, encrypted with the key of this id (secrets/vault.ts). NULL: the endpoint needs none.
  vault_key_id text,
  sealed_key bytea,
  -- Last characters of the key. NULL: no key, or a short one.
  last_four text,
  -- The person stays named after leaving the team.
  set_by text NOT NULL,
  set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((vault_key_id IS NULL) = (sealed_key IS NULL))
);
