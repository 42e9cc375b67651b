-- The key whose owner opened a page with this key: of the key of a browser session only. It ends with that key.
ALTER TABLE api_keys ADD COLUMN minted_by uuid REFERENCES api_keys ON DELETE CASCADE;
ALTER TABLE api_keys ADD CHECK (minted_by IS NULL OR (kind = 'personal' AND NOT is_operator AND expires_at IS NOT NULL));
CREATE INDEX api_keys_minted_by ON api_keys (minted_by, created_at) WHERE minted_by IS NOT NULL;

-- One-time codes of links that sign in a browser. A code is deleted when it is used.
CREATE TABLE sign_in_codes (
  -- SHA-256 of the code, which is 32 random bytes.
  hash bytea PRIMARY KEY,
  -- The key that asked for the code. The session acts for its user in its team.
  key_id uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
  expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_codes_key_id ON sign_in_codes (key_id, expires_at);
