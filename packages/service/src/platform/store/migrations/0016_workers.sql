-- Workers, their connections to service processes, and the names under which self-hosted workers connect.

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
  -- How long sandboxes of the worker continue without it, so that its next process can adopt them; 0: they end with it.
  adopt_seconds integer NOT NULL DEFAULT 0,
  -- Report of the worker about its program and about the file system of its sandboxes. NULL: the worker sends none.
  version text,
  disk_free_bytes bigint,
  disk_total_bytes bigint,
  connected_at timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX worker_connections_worker ON worker_connections (worker_id);

-- The names under which self-hosted workers of a team connect. The owner is the person or service account that connected first.
CREATE TABLE worker_pools (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  owner_kind text NOT NULL CHECK (owner_kind IN ('user', 'service_account')),
  owner_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Id in content_revisions. Teams may use the same name.
  uid text NOT NULL GENERATED ALWAYS AS (name || '@' || team_id::text) STORED,
  PRIMARY KEY (team_id, name)
);

-- A pool is content: its machines see the secrets of the runs that name it. Its author is its owner.
CREATE FUNCTION revise_worker_pool() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM write_revision('worker_pool', NEW.uid, NEW.team_id, NEW.owner_kind, NEW.owner_uid, jsonb_build_object(
    'name', NEW.name, 'owner_kind', NEW.owner_kind, 'owner_uid', NEW.owner_uid));
  RETURN NULL;
END $$;
CREATE TRIGGER revise_worker_pool AFTER INSERT OR UPDATE OF owner_kind, owner_uid ON worker_pools
  FOR EACH ROW EXECUTE FUNCTION revise_worker_pool();
CREATE TRIGGER end_worker_pool_revisions AFTER DELETE ON worker_pools REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('worker_pool');

-- People and service accounts, besides the owner, whose keys connect under the name.
CREATE TABLE worker_pool_connectors (
  team_id uuid NOT NULL,
  pool text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('user', 'service_account')),
  uid text NOT NULL,
  added_by_uid text NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team_id, pool, uid),
  FOREIGN KEY (team_id, pool) REFERENCES worker_pools ON DELETE CASCADE
);
