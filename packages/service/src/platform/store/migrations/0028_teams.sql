-- Teams: four roles, several teams for a person, and invitations.

ALTER TABLE team_members DROP CONSTRAINT team_members_role_check;
ALTER TABLE team_members ADD CHECK (role IN ('owner', 'admin', 'member', 'viewer'));
ALTER TABLE team_members ADD COLUMN joined_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX team_members_user ON team_members (user_id);

-- Only an owner can make an owner: the first administrator of each team is one.
UPDATE team_members m SET role = 'owner'
FROM (
  SELECT DISTINCT ON (a.team_id) a.team_id, a.user_id
  FROM team_members a JOIN users u ON u.id = a.user_id WHERE a.role = 'admin' ORDER BY a.team_id, u.number
) first
WHERE m.team_id = first.team_id AND m.user_id = first.user_id;

-- Invitations that wait. One is deleted when it is used.
CREATE TABLE team_invitations (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- SHA-256 of the invitation's key, which is 32 random bytes.
  hash bytea NOT NULL UNIQUE,
  role text NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
  note text,
  -- The invitation ends when this person leaves the team or gets a lower role.
  invited_by uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX team_invitations_team ON team_invitations (team_id, created_at, id);
CREATE INDEX team_invitations_invited_by ON team_invitations (invited_by, team_id);
CREATE INDEX team_invitations_expires_at ON team_invitations (expires_at);

-- The team that the browser session acts in; NULL: that of the key.
ALTER TABLE sign_in_codes ADD COLUMN team_id uuid REFERENCES teams ON DELETE CASCADE;

-- The person of a personal schedule; NULL: it is the team's.
ALTER TABLE schedules ADD COLUMN user_uid text CHECK (user_uid = editor_uid);
