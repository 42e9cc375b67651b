-- Actions that an approval rule of the run's configuration matches, and that the service holds until a person decides.
CREATE TABLE held_actions (
  -- Id of the request to the person (request_id).
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- The execution that last tried the action.
  execution_id uuid NOT NULL,
  -- Order in which the agent learns of them. A new try of a waiting action gets a new number.
  number bigint NOT NULL,
  held_by text NOT NULL CHECK (held_by IN ('gateway', 'proxy')),
  -- Exactly the action: an approval is valid for no other. For a push: repository, branches and commits.
  subject text NOT NULL,
  -- Actions that an approval for the rest of the run allows, in words.
  rest_of_run text NOT NULL,
  -- Title and action of the request to the person.
  request jsonb NOT NULL,
  -- `used`: an approval that has let its action pass.
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'approved', 'approved_for_run', 'denied', 'used')),
  decided_at timestamptz,
  -- Until then a program of the sandbox waits for the answer.
  tried_until timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CHECK ((state = 'waiting') = (decided_at IS NULL))
);
CREATE INDEX held_actions_of_run ON held_actions (run_id, number);

-- How long an approval is valid; NULL: the follow-up approves nothing, or is older than this column.
ALTER TABLE followups ADD COLUMN allow_for text CHECK (allow_for IN ('once', 'run'));
