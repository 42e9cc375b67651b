-- Pull requests in the repositories of claimed installations of GitHub Apps, as the events of GitHub show them.
CREATE TABLE pull_requests (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- In the canonical form of artifacts.
  url text NOT NULL,
  state text NOT NULL CHECK (state IN ('open', 'draft', 'merged', 'closed')),
  author_login text NOT NULL,
  opened_at timestamptz NOT NULL,
  merged_at timestamptz,
  closed_at timestamptz,
  -- NULL: no event had the sizes yet.
  additions integer,
  deletions integer,
  changed_files integer,
  num_commits integer,
  -- True: an event of the opening was seen, and so all later ones.
  history_complete boolean NOT NULL,
  -- When GitHub last changed it. An older event changes nothing.
  changed_at timestamptz NOT NULL,
  PRIMARY KEY (team_id, url)
);

-- What people and programs did to a pull request.
CREATE TABLE pull_request_events (
  team_id uuid NOT NULL,
  url text NOT NULL,
  -- GitHub's id of the delivery.
  guid text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('opened', 'code_push', 'review_approved', 'review_changes_requested', 'review_commented', 'comment',
    'review_comment', 'pr_action')),
  -- False: a bot, or an App, also one that acts for a person.
  is_person boolean NOT NULL,
  login text NOT NULL,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (team_id, guid)
);
CREATE INDEX pull_request_events_url ON pull_request_events (team_id, url, occurred_at);
CREATE INDEX pull_request_events_age ON pull_request_events (occurred_at);
