-- Ids are UUIDv7 made by the service, so that they sort by time; order by text uses COLLATE "C".

CREATE TABLE teams (
  id uuid PRIMARY KEY,
  uid text NOT NULL UNIQUE,
  number integer GENERATED ALWAYS AS IDENTITY UNIQUE,
  name text NOT NULL,
  max_concurrent_executions integer NOT NULL DEFAULT 100 CHECK (max_concurrent_executions >= 0),
  max_instance_runtime_seconds integer NOT NULL DEFAULT 14400 CHECK (max_instance_runtime_seconds > 0),
  max_setup_seconds integer NOT NULL DEFAULT 3600 CHECK (max_setup_seconds > 0),
  queue_ttl_hours integer NOT NULL DEFAULT 24 CHECK (queue_ttl_hours > 0),
  -- Round robin between teams with waiting work; the count is compared-and-set so that two assigners never overrun a limit.
  served_at timestamptz NOT NULL DEFAULT '-infinity',
  served_count bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE users (
  id uuid PRIMARY KEY,
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
  -- SHA-256 of the raw key, which is 32 random bytes: no salt or stretching needed.
  hash bytea NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('personal', 'agent')),
  name text NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  user_id uuid REFERENCES users ON DELETE CASCADE,
  agent_uid text,
  -- Belongs to who runs the service: its workers serve the hosted pool of every team.
  is_operator boolean NOT NULL DEFAULT false,
  prefix text NOT NULL,
  last_four text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  CHECK ((kind = 'personal') = (user_id IS NOT NULL))
);

-- Keys that all service processes share: cursor and URL signatures.
CREATE TABLE server_secrets (
  name text PRIMARY KEY,
  value bytea NOT NULL
);

CREATE TABLE service_instances (
  id uuid PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE environments (
  uid text PRIMARY KEY CHECK (uid ~ '^[A-Za-z0-9]{22}$'),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  config jsonb NOT NULL,
  setup_failed boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX environments_team ON environments (team_id, updated_at DESC, uid);

CREATE TABLE runs (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  state text NOT NULL CHECK (state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')),
  title text NOT NULL,
  prompt text NOT NULL,
  -- As the client sent it, unknown members included.
  config jsonb NOT NULL DEFAULT '{}',
  name text,
  model_id text NOT NULL,
  harness text NOT NULL,
  environment_id text,
  skill_spec text,
  worker_host text,
  source text NOT NULL,
  execution_location text NOT NULL DEFAULT 'REMOTE' CHECK (execution_location IN ('LOCAL', 'REMOTE')),
  creator_kind text NOT NULL CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text NOT NULL,
  executor_kind text NOT NULL CHECK (executor_kind IN ('user', 'service_account')),
  executor_uid text NOT NULL,
  mode text CHECK (mode IN ('normal', 'plan', 'orchestrate')),
  parent_run_id uuid REFERENCES runs ON DELETE SET NULL,
  -- Parent, its parent, and so on.
  ancestor_ids uuid[] NOT NULL DEFAULT '{}',
  schedule_id uuid,
  metadata jsonb NOT NULL DEFAULT '{}',
  conversation_id uuid NOT NULL,
  current_execution_id uuid NOT NULL,
  -- Of the latest assignment to a worker, while PENDING: an answer to an older one is refused.
  assignment_id uuid,
  status_message text,
  error_code text,
  retryable boolean,
  -- Number of the last event of the run, over run_events and conversation_events: gapless, because the row is locked to take one.
  event_seq bigint NOT NULL DEFAULT 1,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  ended_at timestamptz
);
CREATE INDEX runs_updated ON runs (team_id, updated_at, id);
CREATE INDEX runs_created ON runs (team_id, created_at, id);
CREATE INDEX runs_title ON runs (team_id, title COLLATE "C", id);
CREATE INDEX runs_skill ON runs (team_id, skill_spec COLLATE "C", id);
CREATE INDEX runs_state ON runs (team_id, state, updated_at, id);
CREATE INDEX runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_conversation ON runs (conversation_id);

-- The launches of a run, numbered in it. The queue is the set of those in phase `queued`.
CREATE TABLE executions (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  team_id uuid NOT NULL,
  number integer NOT NULL,
  -- queued → assigned → claimed → running → stopping → ended; `stopping`: decided, its sandbox still there.
  phase text NOT NULL CHECK (phase IN ('queued', 'assigned', 'claimed', 'running', 'stopping', 'ended')),
  -- How many launches failed before it, since the last success or follow-up: 0, 1, 2.
  attempt integer NOT NULL DEFAULT 0,
  -- '' is the hosted pool, else the name of the self-hosted worker.
  pool text NOT NULL,
  queued_at timestamptz NOT NULL DEFAULT now(),
  available_at timestamptz NOT NULL DEFAULT now(),
  assigned_at timestamptz,
  claim_deadline timestamptz,
  connection_id uuid,
  worker_id text,
  worker_instance text,
  -- SHA-256 of the run token of the latest assignment: an older assignment's agent is refused by it.
  token_hash bytea UNIQUE,
  claimed_at timestamptz,
  -- Renewed by the worker's connection and by the agent's own calls; no other clock decides liveness.
  lease_until timestamptz,
  agent_seen_at timestamptz,
  sandbox jsonb,
  started_at timestamptz,
  -- The one deadline: of the setup until the agent starts, then of the run.
  deadline_at timestamptz,
  finished_at timestamptz,
  -- Why it is `stopping`: `finished` (its agent said so and leaves by itself) or `ordered` (cancelled, timed out, superseded).
  stop_reason text CHECK (stop_reason IN ('finished', 'ordered')),
  -- After it the sandbox is killed whatever the agent does.
  stop_deadline timestamptz,
  ended_at timestamptz,
  -- What the worker told when the sandbox ended.
  exit jsonb,
  last_agent_seq bigint NOT NULL DEFAULT 0,
  -- Text held back because it may be the beginning of a secret, by stream.
  redaction_tails jsonb NOT NULL DEFAULT '{}',
  transcript_bytes bigint NOT NULL DEFAULT 0,
  transcript_blob text,
  UNIQUE (run_id, number)
);
CREATE INDEX executions_queue ON executions (pool, team_id, available_at, id) WHERE phase = 'queued';
CREATE INDEX executions_busy ON executions (team_id) WHERE phase IN ('assigned', 'claimed', 'running');
CREATE INDEX executions_live ON executions (phase, id) WHERE phase NOT IN ('queued', 'ended');
CREATE INDEX executions_transcript ON executions (id) WHERE phase = 'ended' AND transcript_blob IS NULL AND transcript_bytes > 0;

-- State changes and timeline of a run. A row without event_type is a state change that the timeline does not name.
CREATE TABLE run_events (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  seq bigint NOT NULL,
  event_uuid uuid NOT NULL DEFAULT gen_random_uuid(),
  event_type text,
  state text,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  execution_number integer,
  payload jsonb,
  PRIMARY KEY (run_id, seq)
);

-- What the agent told, in order, redacted; the conversation is read from it.
CREATE TABLE conversation_events (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  seq bigint NOT NULL,
  execution_id uuid NOT NULL,
  event jsonb NOT NULL,
  PRIMARY KEY (run_id, seq)
);

-- Raw transcript of executions that still go on; composed into a blob when they have ended.
CREATE TABLE transcript_chunks (
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  agent_seq bigint NOT NULL,
  lines text NOT NULL,
  PRIMARY KEY (execution_id, agent_seq)
);

CREATE TABLE attachments (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  position integer NOT NULL,
  file_name text NOT NULL,
  mime_type text NOT NULL,
  size_bytes bigint NOT NULL,
  sha256 bytea NOT NULL,
  blob_key text NOT NULL
);
CREATE INDEX attachments_run ON attachments (run_id, position);

CREATE TABLE artifacts (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL,
  conversation_id uuid NOT NULL,
  artifact_type text NOT NULL CHECK (artifact_type IN ('PLAN', 'PULL_REQUEST', 'SCREENSHOT', 'FILE', 'EXTERNAL_REFERENCE')),
  data jsonb NOT NULL,
  -- File-like artifacts exist for readers once their bytes have arrived.
  is_ready boolean NOT NULL,
  is_public boolean NOT NULL DEFAULT false,
  blob_key text,
  size_bytes bigint,
  sha256 bytea,
  canonical_url text,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX artifacts_run ON artifacts (run_id, created_at, id);
CREATE INDEX artifacts_url ON artifacts (team_id, canonical_url) WHERE canonical_url IS NOT NULL;

CREATE TABLE model_requests (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL,
  model_id text NOT NULL,
  provider text NOT NULL,
  status integer NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  -- NULL: the price of the model is not known.
  input_cost_usd numeric,
  output_cost_usd numeric,
  cache_read_cost_usd numeric,
  cache_write_cost_usd numeric,
  duration_ms integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX model_requests_run ON model_requests (run_id);

CREATE TABLE worker_connections (
  id uuid PRIMARY KEY,
  service_instance_id uuid NOT NULL,
  worker_id text NOT NULL,
  instance_id text,
  -- The team whose runs it serves; NULL: the hosted pool of all teams.
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  slots integer,
  draining boolean NOT NULL DEFAULT false,
  sandbox jsonb,
  connected_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX worker_connections_worker ON worker_connections (worker_id);

CREATE TABLE idempotency_keys (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  principal text NOT NULL,
  key text NOT NULL,
  request_hash bytea NOT NULL,
  status integer NOT NULL,
  response jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team_id, principal, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
