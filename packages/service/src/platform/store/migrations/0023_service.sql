-- State that the service processes share.

-- One row about the whole installation, which the first service writes. No migration writes it, because an import needs empty tables.
CREATE TABLE installation (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- The blob store holds it too: so a service with another blob store notices.
  id uuid NOT NULL,
  has_marked_blobs boolean NOT NULL DEFAULT false,
  -- Key that seals secrets; NULL: none was used yet.
  vault_key_id text,
  -- When the bootstrap key was made. It is made once: a deleted one does not come back.
  bootstrapped_at timestamptz,
  -- Since when nothing is started or delivered, because the tables are a copy; NULL: everything works.
  paused_at timestamptz,
  -- The moment of the tables in the last backup that was completed; NULL: none was made.
  backed_up_at timestamptz
);

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

-- Answers to published clients, which repeat a request that got no answer by themselves and without an Idempotency-Key.
CREATE TABLE client_answers (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The caller: its API key, or the execution of its run token.
  principal text NOT NULL,
  -- Of operation, path parameters and body.
  request_hash bytea NOT NULL,
  -- X-Stainless-Retry-Count of the latest request that was answered with it.
  attempt integer NOT NULL,
  response jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the answer was written to the connection; NULL: it was not, or its process died before it recorded the time.
  sent_at timestamptz,
  -- When the client closed the connection, if that was right after the answer was written.
  closed_at timestamptz
);
CREATE INDEX client_answers_request ON client_answers (team_id, principal, request_hash);
CREATE INDEX client_answers_created ON client_answers (created_at);

-- Background work that one of the service processes does once in a while: one row for each kind of sweep. A process that claims the row
-- does the work; the others skip it.
CREATE TABLE sweeps (
  name text PRIMARY KEY,
  next_at timestamptz NOT NULL,
  claimed_by uuid,
  -- Renewed during the sweep. The claim of a process that died expires.
  claimed_until timestamptz,
  finished_at timestamptz,
  result jsonb
);
