-- What happens once in a while, whichever process does it: the claim on its row keeps the others from doing it too.
CREATE TABLE sweeps (
  name text PRIMARY KEY,
  next_at timestamptz NOT NULL,
  claimed_by uuid,
  -- Renewed while it goes on; a claim that ran out belongs to a process that died.
  claimed_until timestamptz,
  finished_at timestamptz,
  result jsonb
);

-- Conversation events and transcript of the run were deleted; a run that was continued since has new ones.
ALTER TABLE runs ADD COLUMN detail_deleted_at timestamptz;

CREATE INDEX runs_ended ON runs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_with_detail ON runs (ended_at, id)
  WHERE ended_at IS NOT NULL AND (detail_deleted_at IS NULL OR detail_deleted_at < ended_at);

-- To find the row that a blob belongs to.
CREATE INDEX attachments_blob ON attachments (blob_key);
CREATE INDEX artifacts_blob ON artifacts (blob_key) WHERE blob_key IS NOT NULL;
CREATE INDEX executions_transcript_blob ON executions (transcript_blob) WHERE transcript_blob IS NOT NULL;

-- Reported, but its bytes never came.
CREATE INDEX artifacts_not_ready ON artifacts (created_at) WHERE NOT is_ready;
