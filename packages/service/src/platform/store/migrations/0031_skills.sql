-- Skills that runs follow, as they were read when the first agent of the run began.

CREATE TABLE run_skills (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- 0: the skill that the run follows. The others are there for its agent to use.
  position integer NOT NULL,
  name text NOT NULL,
  description text NOT NULL,
  owner text NOT NULL,
  repo text NOT NULL,
  -- Of its SKILL.md in the repository.
  path text NOT NULL,
  commit_id text NOT NULL,
  -- The files of the skill as JSON (packages/service/src/skills/of-run.ts). NULL: deleted with the details of an old run.
  blob_key text,
  UNIQUE (run_id, position)
);
