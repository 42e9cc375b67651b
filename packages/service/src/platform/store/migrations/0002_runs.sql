-- Runs: requests, their states, and the follow-ups that continue them. The table executions has the launches of a run.

CREATE TABLE runs (
  id uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,

  -- State. A state change is one compare-and-set statement that also writes run_events.
  state text NOT NULL CHECK (state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')),
  status_message text,
  error_code text,
  -- Members that the error adds to the problem document (provider, auth_url, inaccessible_repos).
  error_detail jsonb,
  -- Of error_code: whether the same request may succeed later.
  retryable boolean,
  -- The question that the agent asks a person: request_id, kind, title, asked_at and its details. Only while BLOCKED.
  open_request jsonb CHECK (open_request IS NULL OR state = 'BLOCKED'),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz,
  ended_at timestamptz,

  -- The request of the client, schedule or automation.
  title text NOT NULL,
  prompt text NOT NULL,
  -- As the client sent it, with members that the contract does not know.
  config jsonb NOT NULL DEFAULT '{}',
  name text,
  model_id text NOT NULL,
  -- The model that the client asked for, while model_id is another one because of an outage.
  wanted_model_id text,
  -- Number of changes of model_id because of outages.
  model_switches integer NOT NULL DEFAULT 0,
  harness text NOT NULL,
  environment_id text,
  -- The revision of the environment that the run executes; NULL: the run has no environment, or is older than revisions.
  environment_revision integer,
  skill_spec text,
  -- The self-hosted worker that the client named; NULL: the hosted pool.
  worker_host text,
  source text NOT NULL,
  execution_location text NOT NULL DEFAULT 'REMOTE' CHECK (execution_location IN ('LOCAL', 'REMOTE')),
  mode text CHECK (mode IN ('normal', 'plan', 'orchestrate')),
  schedule_id uuid,
  -- The schedule as it was when it created the run: it may change or be deleted.
  schedule_name text,
  schedule_cron text,
  metadata jsonb NOT NULL DEFAULT '{}',
  creator_kind text NOT NULL CHECK (creator_kind IN ('user', 'service_account')),
  creator_uid text NOT NULL,
  executor_kind text NOT NULL CHECK (executor_kind IN ('user', 'service_account')),
  executor_uid text NOT NULL,
  -- The contents that the run executes: [{kind, uid?, revision?, name?, author: {kind, uid} | null, accepted}].
  contents jsonb NOT NULL DEFAULT '[]',
  -- The rights of the run, in the form of RunRights in team/access/contents/run-rights.ts; NULL: the run is older than rights.
  rights jsonb,

  -- The tree of runs that agents started.
  parent_run_id uuid REFERENCES runs ON DELETE SET NULL,
  -- The parent, its parent, and so on.
  ancestor_ids uuid[] NOT NULL DEFAULT '{}',
  -- Time of the cancel of this run, while descendants that were requested before it may still be live; NULL: there are none.
  cascade_at timestamptz,

  conversation_id uuid NOT NULL,
  current_execution_id uuid NOT NULL,
  -- The latest assignment to a worker, while PENDING: answers to older assignments are refused.
  assignment_id uuid,

  -- Number of the run's last event, in run_events and conversation_events together. Writers lock this row to take a number,
  -- so numbers have no gaps.
  event_seq bigint NOT NULL DEFAULT 1,
  -- Retention may have deleted some events up to and including this number; all later events exist.
  events_kept_after bigint NOT NULL DEFAULT 0,
  -- When retention deleted conversation events and transcript. A run that was continued later has new ones.
  detail_deleted_at timestamptz,
  -- Members of requests to models that the gateway removed and the timeline of the run names, each once.
  removed_members text[] NOT NULL DEFAULT '{}',

  -- Counters for the storage limits of a run (docs/decisions/limits.md).
  -- Bytes that its agents reported: events of conversation and setup, and lines of the raw transcript.
  event_bytes bigint NOT NULL DEFAULT 0,
  transcript_bytes bigint NOT NULL DEFAULT 0,
  -- Events and lines beyond the limits, which were not stored. Once one is greater than 0, no more text or output is stored.
  dropped_events bigint NOT NULL DEFAULT 0,
  dropped_lines bigint NOT NULL DEFAULT 0
);
CREATE INDEX runs_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_conversation ON runs (conversation_id);
CREATE INDEX runs_cascade ON runs (cascade_at) WHERE cascade_at IS NOT NULL;
-- For retention.
CREATE INDEX runs_ended ON runs (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_with_detail ON runs (ended_at, id)
  WHERE ended_at IS NOT NULL AND (detail_deleted_at IS NULL OR detail_deleted_at < ended_at);
-- For the overlap policies of schedules and automations.
CREATE INDEX runs_live_by_schedule ON runs (schedule_id)
  WHERE schedule_id IS NOT NULL AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED');
CREATE INDEX runs_live_by_automation ON runs ((metadata ->> 'automation_id'))
  WHERE source IN ('WEBHOOK', 'SCHEDULED_AGENT') AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED');

-- Messages that continue a run.
CREATE TABLE followups (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  -- Order within the run. Writers lock the run's row first, so positions are in the order of the messages.
  position bigint GENERATED ALWAYS AS IDENTITY,
  message text NOT NULL,
  mode text CHECK (mode IN ('normal', 'plan', 'orchestrate')),
  -- `run`: the agent of another run of the tree wrote it, and created_by_uid is the id of that run.
  created_by_kind text NOT NULL CHECK (created_by_kind IN ('user', 'service_account', 'run')),
  created_by_uid text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The execution whose agent took the follow-up; NULL: the follow-up waits.
  execution_id uuid,
  taken_at timestamptz,
  -- The message is for the sandbox of a failed setup, which stays for a while. It is no part of the conversation of the run.
  is_debug boolean NOT NULL DEFAULT false,
  -- True: the sender, another run, may repeat a text of another author than the executor of the run that gets the message.
  has_other_authors boolean NOT NULL DEFAULT false,

  -- An answer to a question of the agent (runs.open_request).
  decision text CHECK (decision IN ('approve', 'deny')),
  -- Id of the question.
  answers text,
  -- The question as it was asked: a new sandbox needs both the question and the answer.
  request jsonb,
  CHECK ((execution_id IS NULL) = (taken_at IS NULL)),
  CHECK ((answers IS NULL) = (request IS NULL)),
  CHECK (decision IS NULL OR answers IS NOT NULL)
);
CREATE INDEX followups_run ON followups (run_id, position);
CREATE INDEX followups_waiting ON followups (run_id, position) WHERE execution_id IS NULL;
-- Counts the messages that a run wrote in the last minute.
CREATE INDEX followups_from_run ON followups (created_by_uid, created_at) WHERE created_by_kind = 'run';
