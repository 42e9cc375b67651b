-- Authors of what lives longer than a turn: processes, workspace and home of a run, and conversations. See docs/decisions/rights.md.

-- Authors of the text, as a list of {kind, uid}, or null for an unknown author. A message of another run has the authors whose texts may
-- have influenced the sender. An approval or a choice among the offered answers has none. NULL: the follow-up is older than this column.
ALTER TABLE followups ADD COLUMN authors jsonb;

-- True: the execution begins in a new workspace and home, into which only the stored changes of the repositories are copied.
ALTER TABLE executions ADD COLUMN is_fresh boolean NOT NULL DEFAULT false;

-- The texts of a conversation that a person has accepted: prompts of runs and follow-ups. `text_id` is the id of the run or follow-up.
CREATE TABLE conversation_acceptances (
  text_id uuid NOT NULL,
  user_uid text NOT NULL,
  conversation_id uuid NOT NULL,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- Number of the conversation's last turn when the person accepted it.
  turn integer NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (text_id, user_uid)
);
CREATE INDEX conversation_acceptances_run ON conversation_acceptances (run_id);
CREATE INDEX conversation_acceptances_person ON conversation_acceptances (conversation_id, user_uid);

-- Repositories that sandboxes of a run could read only with a personal credential of the run's executor.
CREATE TABLE personal_clones (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  owner text NOT NULL,
  repo text NOT NULL,
  PRIMARY KEY (run_id, owner, repo)
);

INSERT INTO personal_clones (run_id, owner, repo)
SELECT DISTINCT r.id, lower(g.repository->>'owner'), lower(g.repository->>'repo')
FROM runs r JOIN environments e ON e.uid = r.environment_id AND jsonb_typeof(e.config->'github_repos') = 'array'
CROSS JOIN LATERAL jsonb_array_elements(e.config->'github_repos') g (repository)
JOIN users u ON r.executor_kind = 'user' AND u.uid = r.executor_uid
JOIN code_host_credentials c ON c.user_id = u.id AND c.team_id = r.team_id AND (c.owner IS NULL OR c.owner = lower(g.repository->>'owner'))
WHERE r.updated_at > now() - interval '90 days' AND r.rights->'personal_credentials' IS DISTINCT FROM 'false'
  AND g.repository->>'owner' IS NOT NULL AND g.repository->>'repo' IS NOT NULL;

-- Counts the texts of deleted runs of a conversation that still has other runs. So the number of a turn is never used again.
CREATE TABLE deleted_turns (
  conversation_id uuid PRIMARY KEY,
  turns integer NOT NULL
);

CREATE FUNCTION count_deleted_turns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO deleted_turns AS d (conversation_id, turns)
  SELECT OLD.conversation_id, 1 + (SELECT count(*) FROM followups f WHERE f.run_id = OLD.id)
  WHERE EXISTS (SELECT FROM runs o WHERE o.conversation_id = OLD.conversation_id AND o.id <> OLD.id)
  ON CONFLICT (conversation_id) DO UPDATE SET turns = d.turns + excluded.turns;
  DELETE FROM deleted_turns d WHERE d.conversation_id = OLD.conversation_id
    AND NOT EXISTS (SELECT FROM runs o WHERE o.conversation_id = OLD.conversation_id AND o.id <> OLD.id);
  RETURN OLD;
END $$;
CREATE TRIGGER count_deleted_turns BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION count_deleted_turns();
