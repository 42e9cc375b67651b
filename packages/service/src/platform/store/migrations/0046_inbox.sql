-- What needs a person.

-- A notification. It is deleted when its cause is over.
CREATE TABLE inbox_items (
  -- UUIDv7: the order of the UIDs is the order of time.
  uid uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  kind text NOT NULL
    CHECK (kind IN ('question', 'answer_question', 'spec_review', 'pr_review', 'blocked', 'failed', 'acceptance')),
  -- NULL: the notification is about a revision to accept. Its row holds only the marks of the person: lists find the revision itself.
  run_id uuid REFERENCES runs ON DELETE CASCADE,
  factory_uid text,
  -- Pull requests of the run that were reviewed, merged or closed.
  done_urls text[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX inbox_items_run ON inbox_items (run_id) WHERE run_id IS NOT NULL;

-- The people who are asked.
CREATE TABLE inbox_recipients (
  item_uid uuid NOT NULL REFERENCES inbox_items ON DELETE CASCADE,
  -- The person may have left the team: readers look at the members of the team.
  user_uid text NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  read_at timestamptz,
  dismissed_at timestamptz,
  PRIMARY KEY (item_uid, user_uid)
);
CREATE INDEX inbox_recipients_open ON inbox_recipients (user_uid, team_id, item_uid) WHERE dismissed_at IS NULL;
CREATE INDEX inbox_recipients_open_of_team ON inbox_recipients (team_id, item_uid) WHERE dismissed_at IS NULL;

-- The runs that wait already. Their executor is asked, or the person who started the run.
INSERT INTO inbox_items (team_id, kind, run_id, factory_uid, created_at)
SELECT r.team_id, CASE WHEN r.open_request->>'kind' = 'permission' THEN 'blocked'
    WHEN jsonb_array_length(r.open_request->'options') > 0 THEN 'answer_question' ELSE 'question' END,
  r.id, r.metadata->>'factory_uid', r.updated_at
FROM runs r WHERE r.state = 'BLOCKED';
INSERT INTO inbox_recipients (item_uid, user_uid, team_id)
SELECT DISTINCT i.uid, u.uid, i.team_id FROM inbox_items i JOIN runs r ON r.id = i.run_id
JOIN users u ON u.uid IN (CASE WHEN r.executor_kind = 'user' THEN r.executor_uid END, CASE WHEN r.creator_kind = 'user' THEN r.creator_uid END)
JOIN team_members m ON m.user_id = u.id AND m.team_id = i.team_id;
