-- An agent in the sandbox of a failed setup asks a person, while its run stays FAILED.

ALTER TABLE executions
  -- What it asks. It counts while the execution is idle.
  ADD COLUMN debug_request jsonb;
