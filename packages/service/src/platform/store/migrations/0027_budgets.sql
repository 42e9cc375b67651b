-- Budgets of runs and teams, and the usage by day that outlives the runs.

-- What a team may spend on models. A team without a row has no limit.
CREATE TABLE team_budgets (
  team_id uuid PRIMARY KEY REFERENCES teams ON DELETE CASCADE,
  -- Of a calendar month in UTC; NULL: no limit.
  monthly_limit_usd numeric CHECK (monthly_limit_usd >= 0),
  -- Balance that each model answer reduces; a credit is a US cent. NULL: the team does not use credits.
  credits numeric,
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- What a team spent in a month. Its row is the lock under which model requests of a limited team are admitted.
CREATE TABLE team_spend (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- First day of the month in UTC.
  month date NOT NULL,
  spent_usd numeric NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, month)
);

-- What a run and all runs below it spent. Its row is the lock under which their model requests are admitted.
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

-- Usage of a team by day in UTC. Runs may be deleted, these rows stay.
CREATE TABLE usage_days (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  day date NOT NULL,
  model_id text COLLATE "C" NOT NULL,
  creator_kind text COLLATE "C" NOT NULL,
  creator_uid text COLLATE "C" NOT NULL,
  -- Who the runs executed as.
  executor_kind text COLLATE "C" NOT NULL,
  executor_uid text COLLATE "C" NOT NULL,
  requests bigint NOT NULL DEFAULT 0,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  cache_read_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  -- Costs of the requests whose cost is known.
  cost_usd numeric NOT NULL DEFAULT 0,
  -- Requests that used tokens and whose cost is not known.
  unpriced_requests bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid)
);

-- What was used before this table existed.
INSERT INTO usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid, requests,
  input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, unpriced_requests)
SELECT r.team_id, (q.created_at AT TIME ZONE 'UTC')::date, q.model_id, r.creator_kind, r.creator_uid, r.executor_kind, r.executor_uid,
  count(*), sum(q.input_tokens), sum(q.output_tokens), sum(q.cache_read_tokens), sum(q.cache_write_tokens),
  coalesce(sum(q.input_cost_usd + q.output_cost_usd + q.cache_read_cost_usd + q.cache_write_cost_usd), 0),
  count(*) FILTER (WHERE q.input_cost_usd IS NULL AND q.input_tokens + q.output_tokens + q.cache_read_tokens + q.cache_write_tokens > 0)
FROM model_requests q JOIN runs r ON r.id = q.run_id
GROUP BY 1, 2, 3, 4, 5, 6, 7;

INSERT INTO team_spend (team_id, month, spent_usd)
SELECT team_id, date_trunc('month', day)::date, sum(cost_usd) FROM usage_days GROUP BY 1, 2;

INSERT INTO run_spend (run_id, spent_usd, answers)
SELECT a.id, coalesce(sum(q.input_cost_usd + q.output_cost_usd + q.cache_read_cost_usd + q.cache_write_cost_usd), 0),
  count(*) FILTER (WHERE q.input_tokens + q.output_tokens + q.cache_read_tokens + q.cache_write_tokens > 0)
FROM model_requests q JOIN runs r ON r.id = q.run_id
CROSS JOIN LATERAL unnest(r.id || r.ancestor_ids) AS u(id) JOIN runs a ON a.id = u.id
GROUP BY a.id;
