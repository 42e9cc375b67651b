-- GitHub Apps of teams. The private key of an App is the credential of a code host.
CREATE TABLE github_apps (
  uid text PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  credential_id uuid NOT NULL UNIQUE REFERENCES code_host_credentials ON DELETE CASCADE,
  host text NOT NULL,
  app_id bigint NOT NULL,
  -- Name of the App in mentions and in the addresses of GitHub.
  slug text NOT NULL,
  client_id text NOT NULL,
  -- JSON with the webhook secret and the client secret, encrypted with the key of this id (secrets/vault.ts).
  vault_key_id text NOT NULL,
  sealed_secrets bytea NOT NULL,
  -- Deliveries that GitHub sent before this time have been read from GitHub's own log.
  polled_to timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When a process last began to read that log.
  polled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX github_apps_team ON github_apps (team_id, uid);

-- Installations of the Apps that a team has claimed.
CREATE TABLE github_installations (
  uid text PRIMARY KEY,
  app_uid text NOT NULL REFERENCES github_apps ON DELETE CASCADE,
  team_id uuid NOT NULL,
  installation_id bigint NOT NULL,
  account_id bigint NOT NULL,
  account_login text NOT NULL,
  account_type text NOT NULL,
  -- The webhook of the factory whose log has the deliveries of the installation.
  webhook_uid text NOT NULL UNIQUE REFERENCES webhooks ON DELETE CASCADE,
  factory_uid text NOT NULL,
  -- The event subscription that reports the state of runs to this installation.
  subscription_id uuid NOT NULL,
  is_suspended boolean NOT NULL DEFAULT false,
  claimed_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (app_uid, installation_id)
);
CREATE INDEX github_installations_team ON github_installations (team_id, uid);
CREATE UNIQUE INDEX github_installations_subscription ON github_installations (subscription_id);

-- Accounts of GitHub that people have linked. The numeric id counts, because a login can be renamed and taken by another account.
CREATE TABLE github_people (
  app_uid text NOT NULL REFERENCES github_apps ON DELETE CASCADE,
  github_id bigint NOT NULL,
  user_uid text NOT NULL,
  login text NOT NULL,
  linked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (app_uid, github_id),
  UNIQUE (app_uid, user_uid)
);

-- Issues, pull requests and review threads to which runs answer.
CREATE TABLE github_places (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  installation_uid text NOT NULL REFERENCES github_installations ON DELETE CASCADE,
  repository_id bigint NOT NULL,
  repository text NOT NULL,
  -- False also if it is not known.
  is_private boolean NOT NULL DEFAULT false,
  kind text NOT NULL CHECK (kind IN ('issue', 'pull_request', 'review_thread')),
  number integer NOT NULL,
  -- Id of the first comment of a review thread; 0: another place.
  thread_id bigint NOT NULL DEFAULT 0,
  -- When a person without a link was told how to link.
  noticed_at timestamptz,
  UNIQUE (installation_uid, repository_id, kind, number, thread_id)
);

-- Comments of people that continue the run of a place.
CREATE TABLE github_words (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  place_id uuid NOT NULL REFERENCES github_places ON DELETE CASCADE,
  run_id uuid NOT NULL,
  -- Id of the comment. An event that arrives twice makes one row.
  comment_id bigint NOT NULL,
  comment_kind text NOT NULL CHECK (comment_kind IN ('issue', 'review')),
  github_id bigint NOT NULL,
  user_uid text NOT NULL,
  -- The text, until it was sent to the run.
  message text,
  -- The request of the run that it answers.
  request_id text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'refused')),
  attempts integer NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (place_id, comment_kind, comment_id)
);
CREATE INDEX github_words_due ON github_words (next_attempt_at) WHERE status = 'pending';
CREATE INDEX github_words_run ON github_words (run_id);

-- Comments of the service: one for each run of a place, and one for each notice.
CREATE TABLE github_comments (
  -- The id of the run, or of the delivery of a notice.
  key uuid PRIMARY KEY,
  place_id uuid NOT NULL REFERENCES github_places ON DELETE CASCADE,
  run_id uuid,
  -- NULL: not written, or the answer of GitHub was lost.
  comment_id bigint,
  -- When a process first asked GitHub to write it.
  asked_at timestamptz,
  -- The process that writes it has this time.
  leased_until timestamptz,
  -- The account that caused the run, and whether it is somebody outside the team.
  sender_id bigint,
  is_restricted boolean,
  -- The request of the run that the comment shows. An answer in the place answers this one.
  request_id text,
  -- SHA-256 of the text, so that an equal text is not sent again.
  text_hash bytea,
  -- True: a person deleted it, so it is not written again.
  is_deleted boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX github_comments_place ON github_comments (place_id, created_at);
CREATE INDEX github_comments_age ON github_comments (created_at);
CREATE INDEX github_comments_run ON github_comments (run_id) WHERE run_id IS NOT NULL;

-- NULL: the subscription sends to its URL. `github`: it writes comments on GitHub.
ALTER TABLE event_subscriptions ADD COLUMN channel text CHECK (channel IN ('github'));

-- Who caused an event of a GitHub App, and where (triggers/github). NULL: the sender of the delivery is not a GitHub App.
ALTER TABLE webhook_deliveries ADD COLUMN sender jsonb;
CREATE INDEX webhook_deliveries_place ON webhook_deliveries ((sender->>'place_id'), id) WHERE sender IS NOT NULL;
