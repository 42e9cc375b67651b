-- What a run may store in total (docs/decisions/limits.md). What runs have stored before this is not counted.
ALTER TABLE runs
  -- Bytes that its agents have told: events of conversation and setup, lines of the raw transcript.
  ADD COLUMN event_bytes bigint NOT NULL DEFAULT 0,
  ADD COLUMN transcript_bytes bigint NOT NULL DEFAULT 0,
  -- What was not stored because of the limits. Greater than 0: text and output are not stored any more.
  ADD COLUMN dropped_events bigint NOT NULL DEFAULT 0,
  ADD COLUMN dropped_lines bigint NOT NULL DEFAULT 0;
