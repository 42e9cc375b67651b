-- Indexes for statements that read a whole table without them, and fewer index entries for each run.

-- The keys of a team, and of a person in it.
CREATE INDEX api_keys_team ON api_keys (team_id, user_id);

-- The secrets of a team with those of its people.
CREATE INDEX stored_secrets_team ON stored_secrets (team_id, name);

-- An index on transcript_bytes had new entries in all indexes of the execution at each batch of events, because PostgreSQL writes them
-- all where a column of one of them changes. This column changes once.
ALTER TABLE executions ADD COLUMN has_transcript boolean NOT NULL GENERATED ALWAYS AS (transcript_bytes > 0) STORED;
DROP INDEX executions_transcript;
CREATE INDEX executions_transcript ON executions (id) WHERE phase = 'ended' AND transcript_blob IS NULL AND has_transcript;
