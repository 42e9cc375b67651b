-- The name of the provider's event, which GitHub sends in a header only.
ALTER TABLE webhook_deliveries ADD COLUMN provider_event text;
