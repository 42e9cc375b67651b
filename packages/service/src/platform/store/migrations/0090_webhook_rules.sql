-- How the deliveries of a webhook are read and recognised, and why one was refused.

ALTER TABLE webhooks
  -- {delivery_id_path, event_header, duplicate_window_seconds, signature}, each only where it is set.
  ADD COLUMN rules jsonb NOT NULL DEFAULT '{}',
  DROP CONSTRAINT webhooks_signature_has_scheme,
  -- A token proves some senders whose schemes sign nothing.
  ADD CONSTRAINT webhooks_signature_has_scheme CHECK (auth_mode <> 'signature' OR signature_scheme IS NOT NULL);

ALTER TABLE webhook_deliveries
  -- SHA-256 of the signed bytes, where the signature does not cover the id of the delivery.
  ADD COLUMN signed_hash bytea,
  -- Why it was refused, counts as a duplicate or started nothing; NULL: there is nothing to say.
  ADD COLUMN reason text;
CREATE INDEX webhook_deliveries_signed ON webhook_deliveries (webhook_uid, signed_hash) WHERE label = 'ACCEPTED' AND signed_hash IS NOT NULL;
