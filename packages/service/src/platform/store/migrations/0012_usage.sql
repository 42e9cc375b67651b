-- Usage: the requests to models that went through the gateway.

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
  duration_ms integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX model_requests_run ON model_requests (run_id);
