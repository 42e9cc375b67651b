-- Event subscriptions: webhooks that Runyard sends when a run changes.

CREATE TABLE event_subscriptions (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text,
  url text NOT NULL,
  events text[] NOT NULL,
  -- Filters: a run must match all of them. NULL and {} match every run.
  filter_source text,
  filter_name text,
  filter_metadata jsonb NOT NULL DEFAULT '{}',
  -- The vault key that sealed the secrets (secrets/vault.ts).
  vault_key_id text NOT NULL,
  sealed_secret bytea NOT NULL,
  -- After a rotation the previous secret signs too, until previous_secret_until.
  previous_sealed_secret bytea,
  previous_secret_until timestamptz,
  enabled boolean NOT NULL DEFAULT true,
  -- Why and when the service disabled the subscription.
  disabled_reason text,
  disabled_at timestamptz,
  -- The first failed attempt since the last success.
  failing_since timestamptz,
  -- The last failed attempt, to the hour. After days without an attempt, an old failing_since does not disable the subscription.
  failed_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX event_subscriptions_team ON event_subscriptions (team_id, id);

-- One event for one subscription. The statement that changes the run writes it.
CREATE TABLE event_deliveries (
  -- Sent as `webhook-id`.
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  -- No foreign key: its check would let the change of a run fail when the subscription is deleted at the same time.
  subscription_id uuid NOT NULL,
  event text NOT NULL,
  data jsonb NOT NULL,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  -- Number of attempts that began. Only the process that began the last attempt may record its outcome.
  attempts integer NOT NULL DEFAULT 0,
  -- Attempts of the current round, which begins with the event or with a manual resend. The backoff counts them.
  round_attempts integer NOT NULL DEFAULT 0,
  -- During an attempt it equals leased_until.
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- During an attempt: when the process that makes it is assumed to be dead.
  leased_until timestamptz,
  -- 24 hours after the first attempt of the round: the first failure after it is final.
  retry_until timestamptz,
  delivered_at timestamptz,
  -- When the service gave the delivery up because the secret of the subscription was sealed with another key. The delivery is sent again
  -- once the secret can be opened.
  unsigned_since timestamptz
);
CREATE INDEX event_deliveries_due ON event_deliveries (subscription_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX event_deliveries_log ON event_deliveries (subscription_id, id);
CREATE INDEX event_deliveries_unsigned ON event_deliveries (subscription_id) WHERE unsigned_since IS NOT NULL;

CREATE TABLE event_delivery_attempts (
  delivery_id uuid NOT NULL REFERENCES event_deliveries ON DELETE CASCADE,
  number integer NOT NULL,
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  -- NULL: no answer arrived.
  http_status integer,
  error text,
  PRIMARY KEY (delivery_id, number)
);
