-- Factories, their webhooks, and the log of what senders delivered to them.

CREATE TABLE factories (
  uid text PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text NOT NULL,
  description text,
  alias text,
  -- Repositories that the agents work on: [{owner, repo}].
  repositories jsonb NOT NULL DEFAULT '[]',
  -- Configuration of runs, an AmbientAgentConfig.
  agent_defaults jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX factories_team ON factories (team_id, uid);
CREATE UNIQUE INDEX factories_alias ON factories (team_id, alias);

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
  -- NULL: a signature webhook whose secret was not stored yet. Sealed by the vault key vault_key_id (secrets/vault.ts).
  vault_key_id text,
  sealed_secret bytea,
  -- After a rotation the previous secret is accepted until previous_secret_until.
  previous_sealed_secret bytea,
  previous_secret_until timestamptz,
  -- Changes with everything that a process keeps of the webhook. A delivery is written only if the version that it was checked with is still the current one.
  version integer NOT NULL DEFAULT 1,
  -- Times of the last authenticated deliveries, oldest first, at most 60.
  recent timestamptz[] NOT NULL DEFAULT '{}',
  -- Times of the last deliveries that were refused before or by authentication, oldest first, at most 60.
  recent_rejected timestamptz[] NOT NULL DEFAULT '{}',
  -- Bytes of the stored payloads, or more: duplicates count until the next count.
  payload_bytes bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT webhooks_signature_has_scheme CHECK ((auth_mode = 'signature') = (signature_scheme IS NOT NULL)),
  CONSTRAINT webhooks_enabled_has_secret CHECK (NOT enabled OR sealed_secret IS NOT NULL)
) WITH (fillfactor = 50);
CREATE INDEX webhooks_factory ON webhooks (factory_uid, uid);
CREATE INDEX webhooks_team ON webhooks (team_id);

-- Notifies all processes of a webhook that was changed or deleted, also by the delete of its factory.
CREATE FUNCTION notify_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('runyard_webhooks', OLD.uid);
  RETURN NULL;
END $$;
CREATE TRIGGER webhook_changed AFTER DELETE OR UPDATE OF version ON webhooks FOR EACH ROW EXECUTE FUNCTION notify_webhook();

CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY,
  -- No foreign key: the nightly sweep deletes the log of a deleted webhook in batches.
  webhook_uid text NOT NULL,
  label text NOT NULL CHECK (label IN ('ACCEPTED', 'DUPLICATE', 'REJECTED_AUTH', 'REJECTED_INVALID_JSON', 'REJECTED_TOO_LARGE')),
  size_bytes bigint NOT NULL,
  -- Identity of the delivery as its sender wrote it, or of its body.
  identity text,
  identity_hash bytea,
  replay_of uuid,
  -- Runs that it started, and per automation whether it matched and why not.
  runs text[] NOT NULL DEFAULT '{}',
  outcomes jsonb NOT NULL DEFAULT '[]',
  -- Of accepted ones; NULL there: deleted, because the log of the webhook had grown too large.
  payload bytea,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Of deliveries with one identity, one is accepted.
CREATE UNIQUE INDEX webhook_deliveries_identity ON webhook_deliveries (webhook_uid, identity_hash) WHERE label = 'ACCEPTED';
CREATE INDEX webhook_deliveries_log ON webhook_deliveries (webhook_uid, id);
