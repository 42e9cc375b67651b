-- Executions: the launches of a run, their queue and leases, and the events that their state changes write.

-- One row for each launch of a run: the first, retries and continuations, numbered from 1 within the run. The queue is the set
-- of rows in phase `queued`. No foreign key to runs: rows are written only by statements that insert or lock the run's row, and
-- the check of a foreign key would look that row up once more. delete_parts_of_runs deletes the rows of deleted runs.
CREATE TABLE executions (
  id uuid PRIMARY KEY,
  run_id uuid NOT NULL,
  team_id uuid NOT NULL,
  number integer NOT NULL,
  -- Id that the API shows, also to readers without a key. The worker protocol does not know it.
  session_id uuid NOT NULL DEFAULT gen_random_uuid(),
  -- queued → assigned → claimed → running ⇄ idle → stopping → ended.
  -- `idle`: the turn has ended; the agent waits in its sandbox for a follow-up and holds no slot.
  -- `stopping`: the outcome is decided, the sandbox still exists.
  phase text NOT NULL CHECK (phase IN ('queued', 'assigned', 'claimed', 'running', 'idle', 'stopping', 'ended')),
  -- Number of launches that failed before this one since the last success or follow-up: 0, 1 or 2.
  attempt integer NOT NULL DEFAULT 0,
  -- Number of the earlier execution whose conversation this one continues; NULL: it starts with the run's prompt.
  continues integer,
  -- Number of the earlier execution whose lost turn this one resumes; NULL: none.
  resumes integer,
  -- How often the turn was resumed before this launch.
  resume_count integer NOT NULL DEFAULT 0,
  -- How the machine of that turn was lost.
  loss_message text,
  -- When a person, client or agent asked for this launch, by the creation of the run or by a follow-up. A retry keeps it.
  wanted_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  -- Queue.
  -- '' is the hosted pool; otherwise the name of a self-hosted worker.
  pool text NOT NULL,
  -- Container image of the environment when the run was created; NULL: none. Only workers that run images get the execution.
  image text,
  -- Number of the run's ancestors. Deeper runs are assigned first, because their ancestors may wait for them.
  depth smallint NOT NULL DEFAULT 0,
  queued_at timestamptz NOT NULL DEFAULT now(),
  -- Not assigned before this time: the backoff of a retry.
  available_at timestamptz NOT NULL DEFAULT now(),

  -- Assignment to a worker, and lease.
  assigned_at timestamptz,
  claim_deadline timestamptz,
  -- Row of worker_connections.
  connection_id uuid,
  worker_id text,
  -- Row of worker_instances.
  worker_instance text,
  -- SHA-256 of the run token of the latest assignment. Agents of older assignments have other tokens and are refused.
  token_hash bytea,
  claimed_at timestamptz,
  -- Renewed by the worker's connection and by the agent's own calls. It alone decides whether the execution is alive.
  lease_until timestamptz,
  agent_seen_at timestamptz,
  -- The worker's report about the sandbox.
  sandbox jsonb,
  started_at timestamptz,
  -- The only deadline: of the setup until the agent starts, of the run after that.
  deadline_at timestamptz,

  -- Turns.
  -- Number of turns whose end the agent reported. A report that arrives twice counts once.
  finished_turns integer NOT NULL DEFAULT 0,
  -- The turn that a client asked to interrupt.
  interrupted_turn integer,
  -- End of the last turn.
  finished_at timestamptz,
  -- When the sandbox stops if no follow-up arrives. Only while idle.
  idle_until timestamptz,
  -- Total time between turns, which does not count as run time.
  idle_seconds double precision NOT NULL DEFAULT 0,
  -- Until this time the agent only waits for other runs and holds no slot. Each of its calls renews it.
  awaiting_until timestamptz,
  -- The question of an agent in the sandbox of a failed setup, whose run stays FAILED. Open while the execution is idle.
  debug_request jsonb,

  -- End.
  -- Why the execution is `stopping`: `finished` (the agent said so and exits by itself) or `ordered` (cancelled, timed out or
  -- superseded).
  stop_reason text CHECK (stop_reason IN ('finished', 'ordered')),
  -- After this time the sandbox is killed, whatever the agent does.
  stop_deadline timestamptz,
  -- Limit to which an upload of the workspace may extend stop_deadline.
  keeping_until timestamptz,
  ended_at timestamptz,
  -- The worker's report about the end of the sandbox.
  exit jsonb,

  -- Reports of the agent.
  -- Number of the agent's last event that was applied. Events up to it are skipped when they arrive again.
  last_agent_seq bigint NOT NULL DEFAULT 0,
  -- Text that is not stored yet because it may be the beginning of a secret, by stream.
  redaction_tails jsonb NOT NULL DEFAULT '{}',
  transcript_bytes bigint NOT NULL DEFAULT 0,
  -- For the index executions_transcript. It changes once; an index on transcript_bytes would make PostgreSQL write the entries of all
  -- indexes of the row at each batch of events.
  has_transcript boolean NOT NULL GENERATED ALWAYS AS (transcript_bytes > 0) STORED,
  -- Blob of the raw transcript, composed from transcript_chunks after the end.
  transcript_blob text,
  -- The last checkpoint of workspace and home that the agent began: its number, the number in runs.event_seq that the conversation had
  -- reached, and the number of commands of a runbook that were done.
  checkpoint integer,
  checkpoint_seq bigint,
  checkpoint_done integer NOT NULL DEFAULT 0,

  -- State that the next sandbox of the run continues with.
  -- The harness's own memory of the conversation, as of the end of turn `memory_turn`.
  memory_blob text,
  memory_turn integer,
  -- Id of the question before which the memory was saved; NULL: it was saved at the end of the turn.
  memory_request text,
  -- NULL: there is none, or an older version saved it.
  memory_bytes bigint,
  -- Workspace and home as of the end of turn `workspace_turn`, or, if workspace_is_checkpoint, as of the middle of this turn. A turn
  -- without a blob: they were empty.
  workspace_turn integer,
  workspace_is_checkpoint boolean NOT NULL DEFAULT false,
  -- They have the effects of the run's events up to this number; NULL: an older version saved them.
  workspace_seq bigint,
  -- Number of commands of a runbook that were done.
  workspace_done integer NOT NULL DEFAULT 0,
  -- When they were saved.
  workspace_at timestamptz,
  workspace_blob text,
  workspace_bytes bigint,
  workspace_sha256 bytea,
  -- The harness's session whose state is in the saved workspace and home.
  workspace_session text,
  UNIQUE (run_id, number)
);
CREATE UNIQUE INDEX executions_session ON executions (session_id);
-- Without the rows of new runs, which have no token yet.
CREATE UNIQUE INDEX executions_token ON executions (token_hash) WHERE token_hash IS NOT NULL;
CREATE INDEX executions_queue ON executions (pool, team_id, depth DESC, available_at, id) WHERE phase = 'queued';
CREATE INDEX executions_busy ON executions (team_id) WHERE phase IN ('assigned', 'claimed', 'running');
CREATE INDEX executions_live ON executions (phase, id) WHERE phase NOT IN ('queued', 'ended');
-- The live executions of a worker's connection, whose leases it renews every few seconds: without this index, each connection read all live executions.
CREATE INDEX executions_of_connection ON executions (connection_id) WHERE phase NOT IN ('queued', 'ended');
CREATE INDEX executions_idle ON executions (idle_until) WHERE phase = 'idle';
-- Ended executions whose transcript is not composed yet.
CREATE INDEX executions_transcript ON executions (id) WHERE phase = 'ended' AND transcript_blob IS NULL AND has_transcript;
-- Find the row that a blob belongs to.
CREATE INDEX executions_transcript_blob ON executions (transcript_blob) WHERE transcript_blob IS NOT NULL;
CREATE INDEX executions_memory_blob ON executions (memory_blob) WHERE memory_blob IS NOT NULL;
CREATE INDEX executions_workspace_blob ON executions (workspace_blob) WHERE workspace_blob IS NOT NULL;

-- State changes and timeline of a run. No foreign key to runs, for the same reason as in executions.
CREATE TABLE run_events (
  run_id uuid NOT NULL,
  -- From runs.event_seq.
  seq bigint NOT NULL,
  event_uuid uuid NOT NULL DEFAULT gen_random_uuid(),
  -- NULL: a state change that the timeline does not show.
  event_type text,
  state text,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  execution_number integer,
  payload jsonb,
  -- The transaction that wrote the event, or a later one that wrote an earlier event of the run. Team streams read events in
  -- the order (xact, run_id, seq): that keeps the order of each run, and no event appears before one that was already read.
  -- 0: the event is in no team stream, because it came from another database (live/epoch.ts).
  xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (run_id, seq)
);
CREATE INDEX run_events_xact ON run_events (xact) WHERE xact > '0';

-- Gives an event at least the transaction number of the event before it. A transaction may get its number before it waits for
-- the lock of the run: its event is later than events of transactions with higher numbers.
CREATE FUNCTION order_run_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.xact := greatest(NEW.xact, (SELECT xact FROM run_events WHERE run_id = NEW.run_id ORDER BY seq DESC LIMIT 1));
  RETURN NEW;
END $$;
CREATE TRIGGER order_run_event BEFORE INSERT ON run_events
  FOR EACH ROW WHEN (NEW.seq > 1) EXECUTE FUNCTION order_run_event();

-- Do what foreign keys to runs would do on DELETE and TRUNCATE. TRUNCATE also empties the counts of 0022_team_storage.sql.
CREATE FUNCTION delete_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_events WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM executions WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM run_facets WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM attachments WHERE run_id IN (SELECT id FROM deleted_runs);
  RETURN NULL;
END $$;
CREATE TRIGGER delete_parts_of_runs AFTER DELETE ON runs REFERENCING OLD TABLE AS deleted_runs
  FOR EACH STATEMENT EXECUTE FUNCTION delete_parts_of_runs();
CREATE FUNCTION truncate_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE run_events, executions, run_facets, attachments, team_storage, storage_changes CASCADE;
  RETURN NULL;
END $$;
CREATE TRIGGER truncate_parts_of_runs AFTER TRUNCATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION truncate_parts_of_runs();
