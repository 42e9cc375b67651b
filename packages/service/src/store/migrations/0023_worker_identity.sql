-- A running program of our own worker. It proves that it is the same one on a later connection with a token, which the
-- service issued in the answer to its first hello. `executions.worker_instance` and `worker_connections.instance_id` name it.
CREATE TABLE worker_instances (
  id text PRIMARY KEY,
  -- SHA-256 of the token, which is 32 random bytes.
  token_hash bytea NOT NULL UNIQUE,
  worker_id text NOT NULL,
  -- The team whose runs it serves; NULL: the hosted pool of all teams.
  team_id uuid REFERENCES teams ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The key that opened the connection. Each action of a worker is checked against it.
ALTER TABLE worker_connections ADD COLUMN key_id uuid;

-- The id that the API shows for an execution, also to readers without a key. The worker protocol does not know it.
ALTER TABLE executions ADD COLUMN session_id uuid;
-- Links to ended sessions keep their ids: an ended execution has nothing that its id could open.
UPDATE executions SET session_id = CASE WHEN phase = 'ended' THEN id ELSE gen_random_uuid() END;
ALTER TABLE executions ALTER COLUMN session_id SET DEFAULT gen_random_uuid(), ALTER COLUMN session_id SET NOT NULL;
CREATE UNIQUE INDEX executions_session ON executions (session_id);
