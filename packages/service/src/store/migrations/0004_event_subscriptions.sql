-- Ids that SQL makes: UUIDv7 (RFC 9562, 5.7) too, so that they sort by time.
CREATE FUNCTION new_uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT encode(set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid())
      PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

CREATE TABLE event_subscriptions (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text,
  url text NOT NULL,
  events text[] NOT NULL,
  -- A run must have all of them; NULL, {}: any run.
  filter_source text,
  filter_name text,
  filter_metadata jsonb NOT NULL DEFAULT '{}',
  -- Sealed by the key of this id (secrets/vault.ts).
  vault_key_id text NOT NULL,
  sealed_secret bytea NOT NULL,
  -- Signs beside the current one for a while after a rotation.
  previous_sealed_secret bytea,
  previous_secret_until timestamptz,
  enabled boolean NOT NULL DEFAULT true,
  -- Why and when it was disabled by itself.
  disabled_reason text,
  disabled_at timestamptz,
  -- The first failed attempt since the last success.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX event_subscriptions_team ON event_subscriptions (team_id, id);

-- One event for one subscription; its id is the `webhook-id`. Written by the statement that changes the run.
CREATE TABLE event_deliveries (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  -- No reference: that check would make a run's change fail when the subscription is deleted at the same time.
  subscription_id uuid NOT NULL,
  event text NOT NULL,
  data jsonb NOT NULL,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed')),
  -- Attempts begun; whoever records an outcome must have begun the last one.
  attempts integer NOT NULL DEFAULT 0,
  -- Of these, since the event or since it was sent again by hand: the backoff counts them.
  round_attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- While an attempt is under way: when its process is taken for dead. `next_attempt_at` is the same then.
  leased_until timestamptz,
  -- 24 h after the first attempt of the round: the first failure after it is the last.
  retry_until timestamptz,
  delivered_at timestamptz
);
CREATE INDEX event_deliveries_due ON event_deliveries (subscription_id, next_attempt_at) WHERE status = 'pending';
CREATE INDEX event_deliveries_log ON event_deliveries (subscription_id, id);

CREATE TABLE event_delivery_attempts (
  delivery_id uuid NOT NULL REFERENCES event_deliveries ON DELETE CASCADE,
  number integer NOT NULL,
  started_at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  -- NULL: there was no answer.
  http_status integer,
  error text,
  PRIMARY KEY (delivery_id, number)
);
