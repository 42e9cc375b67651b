-- What teams have chosen about models, outages of providers, and the model that a run uses in place of the one it asked for.

CREATE TABLE team_models (
  team_id uuid PRIMARY KEY REFERENCES teams ON DELETE CASCADE,
  -- Model of runs that name none. NULL: that of the service.
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
  -- NULL: it lasts.
  ended_at timestamptz,
  reason text NOT NULL,
  -- Probes since the provider last worked for a while: the next waits longer.
  probes integer NOT NULL DEFAULT 0,
  -- The process that moves it forward probes the provider.
  next_probe_at timestamptz NOT NULL
);

ALTER TABLE runs
  -- Model that the run was created with, while model_id is another one because of an outage.
  ADD COLUMN wanted_model_id text,
  -- Changes of model_id because of outages.
  ADD COLUMN model_switches integer NOT NULL DEFAULT 0;
