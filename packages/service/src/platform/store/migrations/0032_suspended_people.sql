-- Whether the refresh token was sent to the provider and no answer was stored. Many providers accept a refresh token only once, so the
-- provider may refuse it later although it has confirmed the person.
ALTER TABLE sign_on_identities ADD COLUMN token_sent boolean NOT NULL DEFAULT false;

-- People who have left a team, with their keys, so that an end can be taken back for 30 days.
CREATE TABLE ended_members (
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  ended_at timestamptz NOT NULL DEFAULT now(),
  -- List of the rows of api_keys, without sessions.
  keys jsonb NOT NULL,
  PRIMARY KEY (team_id, user_id)
);
CREATE INDEX ended_members_user ON ended_members (user_id);
CREATE INDEX ended_members_ended_at ON ended_members (ended_at);
