-- Credentials with which a person signs in a browser (Web Authentication). A passkey works in all teams of the person.
CREATE TABLE passkeys (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Id of the credential, as the authenticator chose it.
  credential_id bytea NOT NULL UNIQUE,
  -- COSE key.
  public_key bytea NOT NULL,
  -- Number of signatures that the authenticator has reported. 0: the authenticator does not count.
  counter bigint NOT NULL,
  name text NOT NULL,
  -- How the browser reaches the authenticator.
  transports text[] NOT NULL,
  -- The authenticator keeps copies on other devices of the person.
  is_synced boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- Hashes of questions that an authenticator has answered, so that each question is answered once. Only right answers have a row.
CREATE TABLE passkey_uses (
  hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);

-- Only of the key of a browser session that began with a passkey. The session ends with the passkey.
ALTER TABLE api_keys ADD COLUMN passkey_id uuid REFERENCES passkeys ON DELETE CASCADE;
CREATE INDEX api_keys_passkey ON api_keys (passkey_id, created_at) WHERE passkey_id IS NOT NULL;
