-- When an attempt failed last, to the hour: failures with quiet days between them are no failing receiver.
ALTER TABLE event_subscriptions ADD COLUMN failed_at timestamptz;
UPDATE event_subscriptions SET failed_at = clock_timestamp() WHERE failing_since IS NOT NULL;
