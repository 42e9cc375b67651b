-- For the lists of webhooks, automations and deliveries over all factories of a team, and for the stream of the team's deliveries.

ALTER TABLE webhook_deliveries ADD COLUMN team_id uuid;
UPDATE webhook_deliveries d SET team_id = w.team_id FROM webhooks w WHERE w.uid = d.webhook_uid;
-- Their webhooks were deleted.
DELETE FROM webhook_deliveries WHERE team_id IS NULL;
ALTER TABLE webhook_deliveries ALTER COLUMN team_id SET NOT NULL;

-- Code that ends before this file writes deliveries without the team.
CREATE FUNCTION add_team_of_webhook_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT team_id INTO NEW.team_id FROM webhooks WHERE uid = NEW.webhook_uid;
  RETURN NEW;
END $$;
CREATE TRIGGER add_team_of_webhook_delivery BEFORE INSERT ON webhook_deliveries
  FOR EACH ROW WHEN (NEW.team_id IS NULL) EXECUTE FUNCTION add_team_of_webhook_delivery();

-- The transaction that wrote the delivery or its last outcome. Streams read deliveries in the order (xact, id), so none appears before one
-- that was already read. 0: the delivery is in no stream, because it is older than the streams or came from another database (live/epoch.ts).
ALTER TABLE webhook_deliveries ADD COLUMN xact xid8 NOT NULL DEFAULT '0';
ALTER TABLE webhook_deliveries ALTER COLUMN xact SET DEFAULT pg_current_xact_id();
CREATE INDEX webhook_deliveries_xact ON webhook_deliveries (xact) WHERE xact > '0';

CREATE INDEX webhook_deliveries_team ON webhook_deliveries (team_id, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (team_id, provider_event, id) WHERE provider_event IS NOT NULL;
CREATE INDEX webhook_deliveries_refused ON webhook_deliveries (team_id, label, id) WHERE label <> 'ACCEPTED';
-- Counts the deliveries of a webhook by label from the index alone.
DROP INDEX webhook_deliveries_log;
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (webhook_uid, id) INCLUDE (label);

-- A delivery that waited enters the streams again with its outcome.
CREATE FUNCTION stream_webhook_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.xact := pg_current_xact_id();
  RETURN NEW;
END $$;
CREATE TRIGGER stream_webhook_delivery BEFORE UPDATE OF runs, outcomes ON webhook_deliveries
  FOR EACH ROW EXECUTE FUNCTION stream_webhook_delivery();

-- Notifies the processes with streams.
CREATE FUNCTION notify_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('runyard_webhook_deliveries', '');
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_deliveries_changed AFTER INSERT OR UPDATE OF runs, outcomes ON webhook_deliveries
  FOR EACH STATEMENT EXECUTE FUNCTION notify_webhook_deliveries();

-- The last start of an automation, and its starts of a day by outcome.
CREATE INDEX starts_automation ON starts (automation_uid, id) INCLUDE (outcome) WHERE automation_uid IS NOT NULL;
