-- Environments: named settings (repositories, image, setup commands) that runs start in.

CREATE TABLE environments (
  -- Id in the API.
  uid text PRIMARY KEY CHECK (uid ~ '^[A-Za-z0-9]{22}$'),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  config jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  creator_kind text CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text,
  last_editor_kind text CHECK (last_editor_kind IN ('user', 'service_account')),
  last_editor_uid text
);
CREATE INDEX environments_team ON environments (team_id, updated_at DESC, uid);
