-- Answers to published clients, which repeat a request that got no answer by themselves and without an Idempotency-Key.

CREATE TABLE client_answers (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The caller: its key, or the execution of its run token.
  principal text NOT NULL,
  -- Of operation, path parameters and body.
  request_hash bytea NOT NULL,
  -- X-Stainless-Retry-Count of the latest request that was answered with it.
  attempt integer NOT NULL,
  response jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When the answer was written to the connection; null: it was not, or its process died before it could say so.
  sent_at timestamptz,
  -- When the client closed the connection, if that was right after the answer was written.
  closed_at timestamptz
);
CREATE INDEX client_answers_request ON client_answers (team_id, principal, request_hash);
CREATE INDEX client_answers_created ON client_answers (created_at);
