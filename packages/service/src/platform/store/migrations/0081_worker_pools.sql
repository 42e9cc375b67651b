-- The names under which self-hosted workers of a team connect. The owner is the person or service account that connected first.
CREATE TABLE worker_pools (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  owner_kind text NOT NULL CHECK (owner_kind IN ('user', 'service_account')),
  owner_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (team_id, name)
);

-- The others whose keys connect under the name.
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
