-- Runs that wait for a person (BLOCKED), and follow-ups that answer them.

-- What the agent asks: request_id, kind, title, asked_at, and what else it told. Only while BLOCKED.
ALTER TABLE runs ADD COLUMN open_request jsonb CHECK (open_request IS NULL OR state = 'BLOCKED');

ALTER TABLE followups
  ADD COLUMN decision text CHECK (decision IN ('approve', 'deny')),
  -- Id of the request that it answers, and the request as it was asked: a new sandbox must know what was decided.
  ADD COLUMN answers text,
  ADD COLUMN request jsonb,
  ADD CHECK ((answers IS NULL) = (request IS NULL)),
  ADD CHECK (decision IS NULL OR answers IS NOT NULL);
