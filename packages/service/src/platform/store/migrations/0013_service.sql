-- What the service processes share.

-- Keys that sign cursors and URLs.
CREATE TABLE server_secrets (
  name text PRIMARY KEY,
  value bytea NOT NULL
);

-- Running service processes. The connections of a process that was not seen for a while are lost.
CREATE TABLE service_instances (
  id uuid PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);

-- Answers to requests with an Idempotency-Key: a request that arrives again gets the same answer.
CREATE TABLE idempotency_keys (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The caller: keys of different callers are independent.
  principal text NOT NULL,
  key text NOT NULL,
  -- The same key with another request is a conflict.
  request_hash bytea NOT NULL,
  status integer NOT NULL,
  response jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team_id, principal, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at);
