-- Branches that runs push through the gateway.

CREATE TABLE pushed_branches (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- 1, 2, … within the run.
  number integer NOT NULL,
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  -- `owner/repo` in lower case.
  repository text NOT NULL,
  -- Name without refs/heads/; of other refs the full name.
  branch text NOT NULL,
  -- Commits as hexadecimal ids; all zeros: none.
  from_id text NOT NULL,
  to_id text NOT NULL,
  -- sent: forwarded, and no answer is known. pushed, rejected: the answer of the code host. refused: not forwarded.
  result text NOT NULL CHECK (result IN ('sent', 'pushed', 'rejected', 'refused')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, number)
);
CREATE INDEX pushed_branches_execution ON pushed_branches (execution_id);
