-- Tasks of factories: title and stage of the conversation that works on each. State and outputs of a task are those of its runs.
CREATE TABLE factory_tasks (
  uid text COLLATE "C" PRIMARY KEY,
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  conversation_id uuid NOT NULL UNIQUE,
  -- Newest run of the conversation at the creation. It may have been deleted.
  run_id uuid NOT NULL,
  title text NOT NULL,
  description text,
  stage text NOT NULL CHECK (stage IN ('TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'COMPLETE', 'CANCELLED')),
  -- When the stage was last written: a later cancel of the run overrides it.
  stage_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX factory_tasks_created ON factory_tasks (factory_uid, created_at, uid);
CREATE INDEX factory_tasks_team ON factory_tasks (team_id);
