-- Live streams of a team's events, whose event ids hold transaction numbers (docs/decisions/live-streams.md).

-- One row: the database whose transaction numbers the ids of team streams hold.
CREATE TABLE event_stream_epoch (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- Part of the event ids: ids with another epoch are refused.
  epoch text NOT NULL,
  -- Cluster, database and timeline. It changes after an import, a restore or a failover; then a new epoch begins.
  identity text NOT NULL
);

-- The transaction number at a time, recorded once a night. It shows which event ids are older than the window of the streams.
CREATE TABLE event_stream_marks (
  marked_at timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
  xact xid8 NOT NULL
);
