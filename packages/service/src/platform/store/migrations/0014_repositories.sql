-- Repositories: credentials for code hosts, the skills that runs read, and the branches that they push.

-- Credentials with which the gateway reaches private repositories.
CREATE TABLE code_host_credentials (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- The person whose runs a personal credential is for; NULL: every run of the team.
  user_id uuid,
  kind text NOT NULL CHECK (kind IN ('token', 'github_app')),
  -- In lower case, with the port where the URL has one.
  host text NOT NULL,
  -- In lower case; NULL: every owner.
  owner text,
  -- Of a token: the name that it is sent with.
  username text,
  -- Of a GitHub App. Without installation_id, that of the repository is looked up.
  app_id text,
  installation_id text,
  -- The token, or the private key of the App. Only the service's key with this id opens it (secrets/vault.ts).
  vault_key_id text NOT NULL,
  sealed_secret bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((kind = 'token') = (username IS NOT NULL)),
  CHECK ((kind = 'github_app') = (app_id IS NOT NULL)),
  -- A person who leaves the team leaves no credential in it.
  FOREIGN KEY (team_id, user_id) REFERENCES team_members ON DELETE CASCADE
);
-- PostgreSQL 14 has no NULLS NOT DISTINCT.
CREATE UNIQUE INDEX code_host_credentials_place ON code_host_credentials
  (team_id, coalesce(user_id, '00000000-0000-0000-0000-000000000000'), host, coalesce(owner, ''));

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
  -- The files of the skill as JSON (team/skills/of-run.ts). NULL: deleted with the details of an old run.
  blob_key text,
  UNIQUE (run_id, position)
);

-- Branches that runs push through the gateway.
CREATE TABLE pushed_branches (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- 1, 2, … within the run.
  number integer NOT NULL,
  execution_id uuid NOT NULL REFERENCES executions ON DELETE CASCADE,
  -- `owner/repo` in lower case.
  repository text NOT NULL,
  -- Name without refs/heads/; of other refs the full name.
  branch text NOT NULL,
  -- Commits as hexadecimal ids; all zeros: none.
  from_id text NOT NULL,
  to_id text NOT NULL,
  -- sent: forwarded, the service waits for the answer of the code host. pushed, rejected: this answer. unknown: the code host did not
  -- answer, or the service was killed before it recorded the answer. refused: not forwarded.
  result text NOT NULL CHECK (result IN ('sent', 'unknown', 'pushed', 'rejected', 'refused')),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (run_id, number)
);
CREATE INDEX pushed_branches_execution ON pushed_branches (execution_id);
CREATE INDEX pushed_branches_sent ON pushed_branches (created_at) WHERE result = 'sent';
