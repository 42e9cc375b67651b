-- Workers and their connections to service processes.

-- A running program of Runyard's own worker. On a later connection it proves that it is the same program with a token, which
-- the service issued in the answer to its first hello. executions.worker_instance and worker_connections.instance_id hold the id.
CREATE TABLE worker_instances (
  id text PRIMARY KEY,
  -- SHA-256 of the token, which is 32 random bytes.
  token_hash bytea NOT NULL UNIQUE,
  worker_id text NOT NULL,
  -- The team whose runs the worker serves; NULL: the hosted pool of all teams.
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE worker_connections (
  id uuid PRIMARY KEY,
  -- The service process that holds the connection.
  service_instance_id uuid NOT NULL,
  -- The name that the worker gave itself. Several connections may share it.
  worker_id text NOT NULL,
  -- NULL: the public worker, which does not name its instance.
  instance_id text,
  -- The API key that opened the connection. Each action of the worker is checked against it.
  key_id uuid,
  -- The team whose runs the worker serves; NULL: the hosted pool of all teams.
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  -- NULL: the worker did not say how many executions it can run.
  slots integer,
  draining boolean NOT NULL DEFAULT false,
  sandbox jsonb,
  connected_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX worker_connections_worker ON worker_connections (worker_id);
