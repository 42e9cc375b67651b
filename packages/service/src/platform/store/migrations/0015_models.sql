-- Models: choices of teams, outages of providers, requests through the gateway, budgets and usage.

-- Choices of a team about models. A team without a row has the defaults.
CREATE TABLE team_models (
  team_id uuid PRIMARY KEY REFERENCES teams ON DELETE CASCADE,
  -- Model of runs that name none. NULL: the default of the service.
  default_model_id text,
  -- Models for runs that name none for an outage, in their order.
  fallback_model_ids text[] NOT NULL DEFAULT '{}',
  -- Models that the team's runs may not use.
  disabled_model_ids text[] NOT NULL DEFAULT '{}',
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row for each provider that had an outage. The row stays, so that an outage that comes and goes is written at a bounded rate.
CREATE TABLE model_outages (
  provider text PRIMARY KEY,
  began_at timestamptz NOT NULL,
  -- NULL: the outage lasts.
  ended_at timestamptz,
  reason text NOT NULL,
  -- Probes since the provider last worked for a while: the next waits longer.
  probes integer NOT NULL DEFAULT 0,
  -- The process that moves this time forward probes the provider.
  next_probe_at timestamptz NOT NULL
);

-- Requests to models that went through the gateway.
CREATE TABLE model_requests (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL,
  model_id text NOT NULL,
  provider text NOT NULL,
  -- HTTP status of the provider's answer.
  status integer NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cache_read_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  -- Costs are NULL where the price of the model is not known.
  input_cost_usd numeric,
  output_cost_usd numeric,
  cache_read_cost_usd numeric,
  cache_write_cost_usd numeric,
  -- Cost of the provider's own tools; NULL: the request used none.
  tools_cost_usd numeric,
  duration_ms integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX model_requests_run ON model_requests (run_id);

-- Limits on the costs of models of a team. A team without a row has no limit.
CREATE TABLE team_budgets (
  team_id uuid PRIMARY KEY REFERENCES teams ON DELETE CASCADE,
  -- Of a calendar month in UTC; NULL: no limit.
  monthly_limit_usd numeric CHECK (monthly_limit_usd >= 0),
  -- Balance that each model answer reduces; a credit is a US cent. NULL: the team does not use credits.
  credits numeric,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- Costs of a team in a month. The row is the lock under which model requests of a limited team are admitted.
CREATE TABLE team_spend (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- First day of the month in UTC.
  month date NOT NULL,
  spent_usd numeric NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, month)
);

-- Costs of a run and all runs below it. The row is the lock under which their model requests are admitted.
CREATE TABLE run_spend (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  spent_usd numeric NOT NULL DEFAULT 0,
  -- Model answers.
  answers bigint NOT NULL DEFAULT 0
);

-- Model requests under a budget that were admitted and are not accounted for yet.
CREATE TABLE open_model_requests (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  execution_id uuid NOT NULL,
  -- The run, the runs above it, and its team: whose budgets the request uses.
  accounts uuid[] NOT NULL,
  -- The most that the request can cost.
  reserved_usd numeric NOT NULL,
  -- The request's usage as far as it is known before the answer: recorded if the service process dies.
  known_usage jsonb NOT NULL,
  -- The service process that sends it.
  service_instance_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX open_model_requests_accounts ON open_model_requests USING gin (accounts);
CREATE INDEX open_model_requests_run ON open_model_requests (run_id);

-- Usage of a team by day in UTC. The rows stay when runs are deleted.
CREATE TABLE usage_days (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  day date NOT NULL,
  model_id text COLLATE "C" NOT NULL,
  creator_kind text COLLATE "C" NOT NULL,
  creator_uid text COLLATE "C" NOT NULL,
  -- The person or service account that the runs executed as.
  executor_kind text COLLATE "C" NOT NULL,
  executor_uid text COLLATE "C" NOT NULL,
  -- Automation, factory and environment of the runs. '': the runs had none; NULL: the row is older than the column.
  automation_uid text COLLATE "C",
  factory_uid text COLLATE "C",
  environment_uid text COLLATE "C",
  requests bigint NOT NULL DEFAULT 0,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  -- Costs of the requests whose cost is known.
  cost_usd numeric NOT NULL DEFAULT 0,
  -- Requests that used tokens and whose cost is not known.
  unpriced_requests bigint NOT NULL DEFAULT 0
);
-- One row for each group. No UID contains '?'.
CREATE UNIQUE INDEX usage_days_group ON usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid,
  coalesce(automation_uid, '?'), coalesce(factory_uid, '?'), coalesce(environment_uid, '?'));
