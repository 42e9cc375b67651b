-- Environments that are shared by their link.

-- Since when a person who has the uid may use the environment; NULL: it is not shared.
ALTER TABLE environments ADD COLUMN link_shared_at timestamptz;

-- People of other teams who opened an environment while it was shared. They are deleted when the sharing ends.
CREATE TABLE environment_visitors (
  environment_uid text NOT NULL REFERENCES environments ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  opened_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (environment_uid, user_id)
);
CREATE INDEX environment_visitors_user ON environment_visitors (user_id);
