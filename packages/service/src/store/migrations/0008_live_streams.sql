-- What live streams go on by after a connection was lost (docs/decisions/live-streams.md).

-- Of the run's events up to and with this number retention may have deleted some; all after it are there.
ALTER TABLE runs ADD COLUMN events_kept_after bigint NOT NULL DEFAULT 0;
UPDATE runs r SET events_kept_after = coalesce((
  SELECT max(n) FROM generate_series(1, r.event_seq) AS n
  WHERE NOT EXISTS (SELECT FROM run_events v WHERE v.run_id = r.id AND v.seq = n)
    AND NOT EXISTS (SELECT FROM conversation_events v WHERE v.run_id = r.id AND v.seq = n)), 0)
WHERE detail_deleted_at IS NOT NULL;

-- The transaction that wrote the event, or a later one that had written an earlier event of the run: a team's events in
-- the order (xact, run_id, seq) keep the order of each run, and none appears before one that was read. 0: written before this.
ALTER TABLE run_events ADD COLUMN xact xid8 NOT NULL DEFAULT '0';
ALTER TABLE run_events ALTER COLUMN xact SET DEFAULT pg_current_xact_id();
CREATE INDEX run_events_xact ON run_events (xact) WHERE xact > '0';

CREATE FUNCTION order_run_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- A transaction may have its number before it waits for the run: its event is later than those of transactions with higher ones.
  NEW.xact := greatest(NEW.xact, (SELECT xact FROM run_events WHERE run_id = NEW.run_id ORDER BY seq DESC LIMIT 1));
  RETURN NEW;
END $$;
CREATE TRIGGER order_run_event BEFORE INSERT ON run_events
  FOR EACH ROW WHEN (NEW.seq > 1) EXECUTE FUNCTION order_run_event();

-- Which numbering of transactions the ids of team streams belong to: one row.
CREATE TABLE event_stream_epoch (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  epoch text NOT NULL,
  -- Cluster, database and timeline: another one after an import, a restore or a failover.
  identity text NOT NULL
);

-- Where transactions were at a time, once a night: ids that are older than the window are told from these.
CREATE TABLE event_stream_marks (
  marked_at timestamptz PRIMARY KEY DEFAULT clock_timestamp(),
  xact xid8 NOT NULL
);
