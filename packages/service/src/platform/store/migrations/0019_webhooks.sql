-- Webhooks of factories, and the log of the deliveries that senders made to them.

CREATE TABLE webhooks (
  uid text PRIMARY KEY,
  factory_uid text NOT NULL REFERENCES factories ON DELETE CASCADE,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  auth_mode text NOT NULL CHECK (auth_mode IN ('token', 'url_token', 'signature')),
  signature_scheme text,
  secret_name text NOT NULL,
  delivery_id_header text,
  enabled boolean NOT NULL,
  -- Why the service disabled the webhook; NULL: it is enabled, or a person disabled it.
  disabled_reason text,
  -- {delivery_id_path, event_header, duplicate_window_seconds, signature}, each only where it is set.
  rules jsonb NOT NULL DEFAULT '{}',
  -- The secret of the team that senders prove; NULL: the webhook has a secret of its own in sealed_secret, or none.
  team_secret_id uuid REFERENCES stored_secrets,
  -- Sealed by the vault key vault_key_id (secrets/vault.ts). Both are NULL if team_secret_id is set, and for a signature webhook whose
  -- secret was not stored yet.
  vault_key_id text,
  sealed_secret bytea,
  -- After a rotation the previous secret is accepted until previous_secret_until.
  previous_sealed_secret bytea,
  previous_secret_until timestamptz,
  -- Grows with each change of a value that processes keep in memory. A delivery is written only if the version that it was checked with
  -- is still the current one.
  version integer NOT NULL DEFAULT 1,
  -- Times of the last authenticated deliveries, oldest first, at most 60.
  recent timestamptz[] NOT NULL DEFAULT '{}',
  -- Times of the last deliveries that were refused before or by authentication, oldest first, at most 60.
  recent_rejected timestamptz[] NOT NULL DEFAULT '{}',
  -- Bytes of the stored payloads, or more: duplicates count until the next count.
  payload_bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  -- A webhook with a token may have a scheme too: some senders with a scheme sign nothing.
  CONSTRAINT webhooks_signature_has_scheme CHECK (auth_mode <> 'signature' OR signature_scheme IS NOT NULL),
  CONSTRAINT webhooks_enabled_has_secret CHECK (NOT enabled OR sealed_secret IS NOT NULL OR team_secret_id IS NOT NULL),
  CONSTRAINT webhooks_one_secret CHECK (sealed_secret IS NULL OR team_secret_id IS NULL)
) WITH (fillfactor = 50);
CREATE INDEX webhooks_factory ON webhooks (factory_uid, uid);
CREATE INDEX webhooks_team ON webhooks (team_id);
CREATE INDEX webhooks_team_secret ON webhooks (team_secret_id) WHERE team_secret_id IS NOT NULL;

-- Notifies all processes of a webhook that was changed or deleted, also by the delete of its factory.
CREATE FUNCTION notify_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('runyard_webhooks', OLD.uid);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_changed AFTER DELETE OR UPDATE OF version ON webhooks FOR EACH ROW EXECUTE FUNCTION notify_webhook();

-- Makes all processes read the webhooks of a changed secret again, and disables the webhooks of a deleted one.
CREATE FUNCTION follow_secret_of_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    UPDATE webhooks SET team_secret_id = NULL, enabled = false, disabled_reason = 'the secret ' || OLD.name || ' of the team was deleted',
      version = version + 1, updated_at = clock_timestamp()
    WHERE team_secret_id = OLD.id;
    RETURN OLD;
  END IF;
  UPDATE webhooks SET version = version + 1 WHERE team_secret_id = NEW.id;
  RETURN NEW;
END $$;
CREATE TRIGGER secret_of_webhooks_changed BEFORE DELETE OR UPDATE OF sealed_value ON stored_secrets
  FOR EACH ROW EXECUTE FUNCTION follow_secret_of_webhooks();

CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  -- No foreign key: the nightly sweep deletes the log of a deleted webhook in batches.
  webhook_uid text NOT NULL,
  team_id uuid NOT NULL,
  label text NOT NULL CHECK (label IN ('ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE')),
  size_bytes bigint NOT NULL,
  -- Name of the provider's event, which GitHub sends only in a header.
  provider_event text,
  -- Identity of the delivery as its sender wrote it, or of its body.
  identity text,
  identity_hash bytea,
  -- SHA-256 of the signed bytes, if the signature does not cover the id of the delivery.
  signed_hash bytea,
  replay_of uuid,
  -- Why the delivery was refused, counts as a duplicate or started nothing.
  reason text,
  -- Runs that the delivery started, and for each automation whether it matched and why not.
  runs text[] NOT NULL DEFAULT '{}',
  outcomes jsonb NOT NULL DEFAULT '[]',
  -- Payload of an accepted delivery; NULL: deleted, because the log of the webhook had grown too large.
  payload bytea,
  -- Headers of an accepted delivery that name its event, so that it can be forwarded as it came; never a credential or a signature.
  -- NULL: it has none, or its payload was deleted.
  headers jsonb,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The transaction that wrote the delivery or its last outcome. Streams read deliveries in the order (xact, id), so none appears before
  -- one that was already read. 0: the delivery is in no stream, because it is older than the streams or came from another database
  -- (live/epoch.ts).
  xact xid8 NOT NULL DEFAULT pg_current_xact_id()
);
-- Of deliveries with one identity, one is accepted.
CREATE UNIQUE INDEX webhook_deliveries_identity ON webhook_deliveries (webhook_uid, identity_hash) WHERE label = 'ACCEPTED';
CREATE INDEX webhook_deliveries_signed ON webhook_deliveries (webhook_uid, signed_hash) WHERE label = 'ACCEPTED' AND signed_hash IS NOT NULL;
-- Counts the deliveries of a webhook by label from the index alone.
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (webhook_uid, id) INCLUDE (label);
-- For the lists of deliveries over all factories of a team, and for the stream of the team's deliveries.
CREATE INDEX webhook_deliveries_team ON webhook_deliveries (team_id, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (team_id, provider_event, id) WHERE provider_event IS NOT NULL;
CREATE INDEX webhook_deliveries_refused ON webhook_deliveries (team_id, label, id) WHERE label <> 'ACCEPTED';
CREATE INDEX webhook_deliveries_xact ON webhook_deliveries (xact) WHERE xact > '0';

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
