-- When the service gave the delivery up because the subscription's secret was sealed with another key. It is sent again once
-- the secret can be opened.
ALTER TABLE event_deliveries ADD COLUMN unsigned_since timestamptz;

CREATE INDEX event_deliveries_unsigned ON event_deliveries (subscription_id) WHERE unsigned_since IS NOT NULL;
