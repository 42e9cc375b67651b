-- Single sign-on: people as the identity providers of the operator know them.

CREATE TABLE sign_on_identities (
  id uuid PRIMARY KEY,
  -- Together they name the person for good (OpenID Connect Core, 5.7). Names and email addresses may change, or pass to others.
  issuer text NOT NULL,
  subject text NOT NULL,
  user_id uuid NOT NULL UNIQUE REFERENCES users ON DELETE CASCADE,
  -- Refresh token of the person, sealed; NULL: the provider gave none, or refused it.
  refresh_token bytea,
  vault_key_id text NOT NULL,
  -- When the provider confirmed the person last.
  confirmed_at timestamptz NOT NULL DEFAULT now(),
  -- Keys and sessions of the person work until then.
  confirmed_until timestamptz NOT NULL,
  -- When the provider is asked next, or the person ends; NULL: never, because the person has ended.
  next_check_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (issuer, subject)
);
CREATE INDEX sign_on_identities_next_check ON sign_on_identities (next_check_at);

-- Sign-ins that are done, so that none is done twice.
CREATE TABLE sign_on_uses (
  -- SHA-256 of the parameter `state`.
  hash bytea PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_on_uses_expires_at ON sign_on_uses (expires_at);

-- Only of the key of a browser session that began with single sign-on. It has no key above it.
ALTER TABLE api_keys ADD COLUMN signed_on_by uuid REFERENCES sign_on_identities ON DELETE CASCADE,
  ADD CHECK (signed_on_by IS NULL OR (kind = 'personal' AND NOT is_operator AND expires_at IS NOT NULL AND minted_by IS NULL));
CREATE INDEX api_keys_signed_on_by ON api_keys (signed_on_by, created_at) WHERE signed_on_by IS NOT NULL;
