-- Access: teams, the people in them, and their API keys.
--
-- Conventions of all migrations: the service makes ids as UUIDv7, so they sort by time of creation. Text that is sorted is
-- sorted with COLLATE "C": by bytes, the same on every server.

CREATE TABLE teams (
  id uuid PRIMARY KEY,
  -- Id in the API.
  uid text NOT NULL UNIQUE,
  -- Id in the worker protocol, which knows owners by integers only.
  number integer GENERATED ALWAYS AS IDENTITY UNIQUE,
  name text NOT NULL,
  -- Limits of the team's runs.
  max_concurrent_executions integer NOT NULL DEFAULT 100 CHECK (max_concurrent_executions >= 0),
  max_instance_runtime_seconds integer NOT NULL DEFAULT 14400 CHECK (max_instance_runtime_seconds > 0),
  max_setup_seconds integer NOT NULL DEFAULT 3600 CHECK (max_setup_seconds > 0),
  queue_ttl_hours integer NOT NULL DEFAULT 24 CHECK (queue_ttl_hours > 0),
  metadata_filters_enabled boolean NOT NULL DEFAULT true,
  -- Teams with queued executions take turns: the team that was served longest ago is next.
  served_at timestamptz NOT NULL DEFAULT '-infinity',
  -- Compare-and-set by each assignment, so that two assigners together never exceed max_concurrent_executions.
  served_count bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  id uuid PRIMARY KEY,
  -- `uid` and `number`: as in teams.
  uid text NOT NULL UNIQUE,
  number integer GENERATED ALWAYS AS IDENTITY UNIQUE,
  display_name text NOT NULL,
  email text,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE team_members (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  role text NOT NULL CHECK (role IN ('admin', 'member')),
  PRIMARY KEY (team_id, user_id)
);

CREATE TABLE api_keys (
  id uuid PRIMARY KEY,
  -- SHA-256 of the raw key. The key is 32 random bytes, so the hash needs no salt and no stretching.
  hash bytea NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('personal', 'agent')),
  name text NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The person that a personal key acts for.
  user_id uuid REFERENCES users ON DELETE CASCADE,
  -- The service account that an agent key acts for.
  agent_uid text,
  -- The key belongs to the operator of the service: workers that use it serve the hosted pool of every team.
  is_operator boolean NOT NULL DEFAULT false,
  -- Beginning and end of the raw key: lists show them, so that people recognise the key.
  prefix text NOT NULL,
  last_four text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  CHECK ((kind = 'personal') = (user_id IS NOT NULL))
);
