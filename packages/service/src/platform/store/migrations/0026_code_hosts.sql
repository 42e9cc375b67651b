-- Code hosts: the credentials with which the gateway reaches private repositories.

CREATE TABLE code_host_credentials (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The person whose runs a personal credential is for; NULL: every run of the team.
  user_id uuid,
  kind text NOT NULL CHECK (kind IN ('token', 'github_app')),
  -- In lower case, with the port where the URL has one.
  host text NOT NULL,
  -- In lower case; NULL: every owner.
  owner text,
  -- Of a token: the name that it is sent with.
  username text,
  -- Of a GitHub App. Without installation_id, that of the repository is looked up.
  app_id text,
  installation_id text,
  -- The token, or the private key of the App. Only the service's key with this id opens it (packages/service/src/secrets).
  vault_key_id text NOT NULL,
  sealed_secret bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((kind = 'token') = (username IS NOT NULL)),
  CHECK ((kind = 'github_app') = (app_id IS NOT NULL)),
  -- A person who leaves the team leaves no credential in it.
  FOREIGN KEY (team_id, user_id) REFERENCES team_members ON DELETE CASCADE
);
-- PostgreSQL 14 has no NULLS NOT DISTINCT.
CREATE UNIQUE INDEX code_host_credentials_place ON code_host_credentials
  (team_id, coalesce(user_id, '00000000-0000-0000-0000-000000000000'), host, coalesce(owner, ''));

-- People of other teams who may see an environment and start runs of their own team in it.
CREATE TABLE environment_guests (
  environment_uid text NOT NULL REFERENCES environments ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  granted_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (environment_uid, user_id)
);
CREATE INDEX environment_guests_user ON environment_guests (user_id);

-- Members that an error adds to the problem document (provider, auth_url, inaccessible_repos), of the change that set error_code.
ALTER TABLE runs ADD COLUMN error_detail jsonb;
