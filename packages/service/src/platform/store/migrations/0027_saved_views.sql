-- Views of the dashboard that people have saved: names of paths with their queries.
CREATE TABLE saved_views (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL,
  user_id uuid NOT NULL,
  name text NOT NULL,
  path text NOT NULL,
  -- Order among the views of the person in the team. A deleted view leaves a gap.
  position integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- A view goes when the person leaves the team.
  FOREIGN KEY (team_id, user_id) REFERENCES team_members ON DELETE CASCADE
);
CREATE INDEX saved_views_person ON saved_views (team_id, user_id, position, id);
