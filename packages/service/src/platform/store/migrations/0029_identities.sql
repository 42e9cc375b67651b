-- Agent identities, and the audit log.

CREATE TABLE agent_identities (
  -- Id in the API.
  uid text PRIMARY KEY CHECK (uid ~ '^[A-Za-z0-9]{22}$'),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  -- Model and environment of its runs that name none.
  base_model text,
  environment_id text,
  skills text[] NOT NULL DEFAULT '{}',
  -- Names of secrets.
  secrets text[] NOT NULL DEFAULT '{}',
  -- Its agent keys may create runs for a person.
  on_behalf_of_enabled boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX agent_identities_team ON agent_identities (team_id, created_at, uid);
-- The keys of an identity end with it.
CREATE INDEX api_keys_agent ON api_keys (team_id, agent_uid) WHERE agent_uid IS NOT NULL;

-- Changes of a team's resources. An entry is written in the transaction of its change, and never changed.
CREATE TABLE audit_entries (
  id uuid PRIMARY KEY,
  -- Order of the list.
  position bigint GENERATED ALWAYS AS IDENTITY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'service_account')),
  actor_uid text NOT NULL,
  action text NOT NULL,
  subject_type text NOT NULL,
  subject_uid text NOT NULL,
  subject_name text,
  -- The members that changed. NULL: the thing is new, or is gone.
  before jsonb,
  after jsonb,
  address text,
  user_agent text,
  request_id text,
  key_id uuid
);
CREATE INDEX audit_entries_team ON audit_entries (team_id, position DESC);
-- For retention.
CREATE INDEX audit_entries_occurred_at ON audit_entries (occurred_at);

-- Counts the entries of a team in a day (UTC), for its limit.
CREATE TABLE audit_days (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  day date NOT NULL,
  entries integer NOT NULL,
  PRIMARY KEY (team_id, day)
);
CREATE INDEX audit_days_day ON audit_days (day);
