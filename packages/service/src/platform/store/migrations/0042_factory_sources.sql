-- The repositories that factories take their definitions from.

CREATE TABLE factory_sources (
  factory_uid text PRIMARY KEY REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- Repository on the code host of the service.
  owner text NOT NULL,
  repo text NOT NULL,
  -- NULL: the default branch.
  branch text,
  -- '': the root of the repository.
  folder text NOT NULL,
  poll_interval_seconds integer NOT NULL,
  -- The person as whom the definitions are read and applied.
  set_by_uid text NOT NULL,
  set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the branch is looked at next. A push brings it forward.
  due_at timestamptz NOT NULL,
  -- The sync that is at work; it can store something only while its claim is here. The claim of a killed process lapses.
  claim uuid,
  claimed_at timestamptz,
  claimed_until timestamptz,
  checked_at timestamptz,
  -- The last commit of this source that was applied.
  applied_commit text,
  -- The last sync that applied a commit or could not.
  last_outcome text CHECK (last_outcome IN ('applied', 'faulty', 'unreadable', 'not_allowed', 'failed')),
  last_at timestamptz,
  last_commit text,
  last_message text,
  -- [{path, line, column, message, suggestion?}], at most 100.
  last_faults jsonb
);
CREATE INDEX factory_sources_due ON factory_sources (due_at);
CREATE INDEX factory_sources_team ON factory_sources (team_id);

-- The commit that the files are from; NULL: they were not applied from a repository.
ALTER TABLE factory_definitions ADD COLUMN commit_id text;
