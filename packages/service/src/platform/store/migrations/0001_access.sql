-- Access: teams, the people in them, their single sign-on, keys, links and saved views, and the audit log.
--
-- Conventions of all migrations: the service makes ids as UUIDv7, so they sort by time of creation. Text that is sorted is
-- sorted with COLLATE "C": by bytes, the same on every server. A row with created_at and updated_at gets both from
-- statement_timestamp(), because two calls of clock_timestamp() may differ by a millisecond.

-- Returns a new UUIDv7 for a row that a statement makes. The ids sort by time to less than a microsecond (RFC 9562, section 6.2,
-- method 3), because deliveries and fires that wait start in the order of their ids. The first 60 bits are the time in 4096ths of a
-- millisecond, with the version between them.
CREATE FUNCTION new_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT (
    overlay(lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '7' FROM 13 FOR 0)
    || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
$$;

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
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  joined_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team_id, user_id)
);
CREATE INDEX team_members_user ON team_members (user_id);

-- Invitations that wait. An invitation is deleted when it is used.
CREATE TABLE team_invitations (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- SHA-256 of the invitation's key, which is 32 random bytes.
  hash bytea NOT NULL UNIQUE,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  note text,
  -- The invitation ends when this person leaves the team or gets a lower role.
  invited_by uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX team_invitations_team ON team_invitations (team_id, created_at, id);
CREATE INDEX team_invitations_invited_by ON team_invitations (invited_by, team_id);
CREATE INDEX team_invitations_expires_at ON team_invitations (expires_at);

-- Single sign-on: people as the identity providers of the operator know them.
CREATE TABLE sign_on_identities (
  id uuid PRIMARY KEY,
  -- Together they name the person for good (OpenID Connect Core, 5.7). Names and email addresses may change, or pass to others.
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL UNIQUE REFERENCES users ON DELETE CASCADE,
  -- Refresh token of the person, sealed; NULL: the provider gave none, or refused it.
  refresh_token bytea,
  vault_key_id text NOT NULL,
  -- When the provider confirmed the person last.
  confirmed_at timestamptz NOT NULL DEFAULT now(),
  -- Keys and sessions of the person work until then.
  confirmed_until timestamptz NOT NULL,
  -- When the provider is asked next, or the person ends; NULL: never, because the person has ended.
  next_check_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (issuer, subject)
);
CREATE INDEX sign_on_identities_next_check ON sign_on_identities (next_check_at);

-- Sign-ins that are done, so that none is done twice.
CREATE TABLE sign_on_uses (
  -- SHA-256 of the parameter `state`.
  hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_on_uses_expires_at ON sign_on_uses (expires_at);

CREATE TABLE api_keys (
  id uuid PRIMARY KEY,
  -- SHA-256 of the raw key. The key is 32 random bytes, so the hash needs no salt and no stretching.
  hash bytea NOT NULL UNIQUE,
  -- `worker`: connects workers of the hosted pool and opens nothing else. It has no person.
  kind text NOT NULL CHECK (kind IN ('personal', 'agent', 'worker')),
  name text NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The person that a personal key acts for.
  user_id uuid REFERENCES users ON DELETE CASCADE,
  -- The service account that an agent key acts for.
  agent_uid text,
  -- UID of the person who made an agent key; NULL: not known.
  created_by_uid text,
  -- Only of the key of a browser session: the key whose owner signed in the browser. The session ends with that key.
  minted_by uuid REFERENCES api_keys ON DELETE CASCADE,
  -- Only of the key of a browser session that began with single sign-on. It has no key above it.
  signed_on_by uuid REFERENCES sign_on_identities ON DELETE CASCADE,
  -- The key belongs to the operator of the service: workers that use it serve the hosted pool of every team.
  is_operator boolean NOT NULL DEFAULT false,
  -- Beginning and end of the raw key: lists show them, so that people recognise the key.
  prefix text NOT NULL,
  last_four text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  CHECK ((kind = 'personal') = (user_id IS NOT NULL)),
  CHECK (minted_by IS NULL OR (kind = 'personal' AND NOT is_operator AND expires_at IS NOT NULL)),
  CHECK (signed_on_by IS NULL OR (kind = 'personal' AND NOT is_operator AND expires_at IS NOT NULL AND minted_by IS NULL)),
  CHECK (kind <> 'worker' OR agent_uid IS NULL)
);
CREATE INDEX api_keys_signed_on_by ON api_keys (signed_on_by, created_at) WHERE signed_on_by IS NOT NULL;
CREATE INDEX api_keys_minted_by ON api_keys (minted_by, created_at) WHERE minted_by IS NOT NULL;
-- The keys of an agent identity end with it.
CREATE INDEX api_keys_agent ON api_keys (team_id, agent_uid) WHERE agent_uid IS NOT NULL;
-- The keys of a team, and of a person in it.
CREATE INDEX api_keys_team ON api_keys (team_id, user_id);

-- One-time codes of links that sign in a browser. A code is deleted when it is used.
CREATE TABLE sign_in_codes (
  -- SHA-256 of the code, which is 32 random bytes.
  hash bytea PRIMARY KEY,
  -- The key that asked for the code. The session acts for its user.
  key_id uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
  -- The team that the session acts in; NULL: the team of the key.
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_codes_key_id ON sign_in_codes (key_id, expires_at);

-- Views of the dashboard that people have saved: names of paths with their queries.
CREATE TABLE saved_views (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL,
  user_id uuid NOT NULL,
  name text NOT NULL,
  path text NOT NULL,
  -- Order among the views of the person in the team. A deleted view leaves a gap.
  position integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- A view goes when the person leaves the team.
  FOREIGN KEY (team_id, user_id) REFERENCES team_members ON DELETE CASCADE
);
CREATE INDEX saved_views_person ON saved_views (team_id, user_id, position, id);

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
  -- The members that changed. `before` is NULL for a new subject, `after` for a deleted one.
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

-- Counts the entries of a day (UTC) for two limits: of a team, and of each author, so that one author cannot use up the limit of the
-- team.
CREATE TABLE audit_days (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  day date NOT NULL,
  -- '': all entries of the team; otherwise kind and UID of one author.
  author text NOT NULL DEFAULT '',
  entries integer NOT NULL,
  PRIMARY KEY (team_id, day, author)
);
CREATE INDEX audit_days_day ON audit_days (day);
