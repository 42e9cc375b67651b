-- Headers of an accepted delivery that say which event it is, so that it can be forwarded as it came; never a credential or a
-- signature. NULL: it has none, or its payload was deleted.
ALTER TABLE webhook_deliveries ADD COLUMN headers jsonb;
