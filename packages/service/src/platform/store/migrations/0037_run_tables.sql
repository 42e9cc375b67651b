-- Contract: needs code of migration 0037 or later.
-- Fewer writes for each change of a run: a narrow table `runs`, whose indexed columns change when a run is created and when it ends,
-- and the table `run_requests` with the texts that never change (docs/decisions/run-list.md).

SET LOCAL maintenance_work_mem = '256MB';

DROP TRIGGER index_new_runs ON runs;
DROP TRIGGER move_run_hour ON runs;
DROP TRIGGER index_run_artifacts ON artifacts;
DROP TRIGGER count_new_runs ON runs;
DROP TRIGGER index_run_words ON runs;
DROP TABLE run_facets;
DROP INDEX runs_updated, runs_created, runs_title, runs_skill, runs_state, runs_by_name, runs_by_model, runs_by_creator, runs_by_executor,
  runs_by_source, runs_by_location, runs_by_environment, runs_without_environment, runs_by_skill, runs_by_schedule, runs_by_error,
  runs_by_state_and_source, runs_without_environment_by_skill, runs_working_below, runs_by_span, runs_ended, runs_with_detail,
  runs_live_by_schedule, runs_live_by_automation;
DROP FUNCTION index_new_runs, move_run_hour, index_run_artifacts, index_run_words, run_span;

-- The request of a client, schedule or automation. Only the skills that a run found change it. No foreign key to runs, for the same reason
-- as in executions: delete_parts_of_runs deletes the rows of deleted runs.
CREATE TABLE run_requests (
  run_id uuid PRIMARY KEY,
  prompt text NOT NULL,
  -- As the client sent it, with members that the contract does not know.
  config jsonb NOT NULL DEFAULT '{}',
  -- The contents that the run executes: [{kind, uid?, revision?, name?, author: {kind, uid} | null, accepted}].
  contents jsonb NOT NULL DEFAULT '[]',
  -- The rights of the run, in the form of RunRights in team/access/contents/run-rights.ts; NULL: the run is older than rights.
  rights jsonb
);
INSERT INTO run_requests SELECT id, prompt, config, contents, rights FROM runs;

-- Returns a number for a value that a filter of the list of runs looks for, such as `state=FAILED`. Numbers of teams differ, so that the
-- index keeps the runs of a team and value together.
CREATE FUNCTION run_facet(team_id uuid, value text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN hashtextextended(team_id::text || value, 0);

-- Returns the numbers of all values of a run. `settled`: its state, once this is not about to change; NULL before.
CREATE FUNCTION run_facets(team_id uuid, settled text, error_code text, name text, model_id text, creator text, executor text, source text,
  execution_location text, environment_id text, skill_spec text, schedule_id uuid, is_of_factory boolean, artifact_types text[],
  ancestor_ids uuid[], metadata jsonb) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN (SELECT array_agg(DISTINCT run_facet(team_id, value)) FROM (
    SELECT unnest(ARRAY[
      'state=' || settled, CASE WHEN settled IS NOT NULL THEN 'error_code=' || error_code END,
      'name=' || name, 'model_id=' || model_id, 'creator=' || creator, 'executor=' || executor, 'source=' || source,
      'execution_location=' || execution_location, 'environment_id=' || coalesce(environment_id, ''), 'skill_spec=' || skill_spec,
      'schedule_id=' || schedule_id, CASE WHEN is_of_factory THEN 'factory' END]) AS value
    UNION ALL SELECT 'artifact_type=' || t FROM unnest(artifact_types) t
    UNION ALL SELECT 'ancestor=' || a FROM unnest(ancestor_ids) a
    UNION ALL SELECT 'metadata:' || m.key || '=' || m.value FROM jsonb_each_text(metadata) m
  ) given WHERE value IS NOT NULL);
END $$;

-- The columns that change together stand together, behind those that stay: PostgreSQL then logs only the bytes between them. Each
-- generated column has the values of its predecessor.
ALTER TABLE runs
  ADD COLUMN is_of_factory boolean NOT NULL GENERATED ALWAYS AS (contents @> '[{"kind": "definition"}]') STORED,
  ADD COLUMN artifact_types text[] NOT NULL DEFAULT '{}',
  -- From the assignment to a worker until the sandbox has ended. Meanwhile only columns change that no index has.
  ADD COLUMN in_sandbox boolean NOT NULL DEFAULT false,
  ADD COLUMN new_error_detail jsonb GENERATED ALWAYS AS (error_detail) STORED,
  ADD COLUMN new_open_request jsonb GENERATED ALWAYS AS (open_request) STORED,
  ADD COLUMN new_started_at timestamptz GENERATED ALWAYS AS (started_at) STORED,
  ADD COLUMN new_state text NOT NULL GENERATED ALWAYS AS (state) STORED,
  ADD COLUMN new_status_message text GENERATED ALWAYS AS (status_message) STORED,
  ADD COLUMN new_error_code text GENERATED ALWAYS AS (error_code) STORED,
  ADD COLUMN new_retryable boolean GENERATED ALWAYS AS (retryable) STORED,
  ADD COLUMN new_updated_at timestamptz NOT NULL GENERATED ALWAYS AS (updated_at) STORED,
  ADD COLUMN new_ended_at timestamptz GENERATED ALWAYS AS (ended_at) STORED;
ALTER TABLE runs
  ALTER COLUMN is_of_factory DROP EXPRESSION, ALTER COLUMN new_error_detail DROP EXPRESSION,
  ALTER COLUMN new_open_request DROP EXPRESSION, ALTER COLUMN new_started_at DROP EXPRESSION, ALTER COLUMN new_state DROP EXPRESSION,
  ALTER COLUMN new_status_message DROP EXPRESSION, ALTER COLUMN new_error_code DROP EXPRESSION, ALTER COLUMN new_retryable DROP EXPRESSION,
  ALTER COLUMN new_updated_at DROP EXPRESSION, ALTER COLUMN new_ended_at DROP EXPRESSION;
ALTER TABLE runs
  DROP COLUMN prompt, DROP COLUMN config, DROP COLUMN contents, DROP COLUMN rights, DROP COLUMN error_detail, DROP COLUMN open_request,
  DROP COLUMN started_at, DROP COLUMN state, DROP COLUMN status_message, DROP COLUMN error_code, DROP COLUMN retryable,
  DROP COLUMN updated_at, DROP COLUMN ended_at;
ALTER TABLE runs RENAME new_error_detail TO error_detail;
ALTER TABLE runs RENAME new_open_request TO open_request;
ALTER TABLE runs RENAME new_started_at TO started_at;
ALTER TABLE runs RENAME new_state TO state;
ALTER TABLE runs RENAME new_status_message TO status_message;
ALTER TABLE runs RENAME new_error_code TO error_code;
ALTER TABLE runs RENAME new_retryable TO retryable;
ALTER TABLE runs RENAME new_updated_at TO updated_at;
ALTER TABLE runs RENAME new_ended_at TO ended_at;
UPDATE runs r SET artifact_types = a.types FROM (
  SELECT run_id, array_agg(DISTINCT artifact_type) AS types FROM artifacts WHERE is_ready GROUP BY run_id) a WHERE a.run_id = r.id;
UPDATE runs SET in_sandbox = true WHERE id IN (SELECT run_id FROM executions WHERE phase NOT IN ('queued', 'ended'));
ALTER TABLE runs
  ALTER COLUMN is_of_factory SET DEFAULT false,
  ALTER COLUMN updated_at SET DEFAULT now(),
  ADD CHECK (state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'SUCCEEDED', 'FAILED', 'BLOCKED', 'ERROR', 'CANCELLED')),
  ADD CHECK (open_request IS NULL OR state = 'BLOCKED'),
  -- The place in the list by last change. The list reads runs in a sandbox by their executions.
  ADD COLUMN list_at timestamptz NOT NULL GENERATED ALWAYS AS (CASE WHEN in_sandbox THEN created_at ELSE updated_at END) STORED,
  -- ended_at, once the sandbox has ended too.
  ADD COLUMN closed_at timestamptz GENERATED ALWAYS AS (CASE WHEN NOT in_sandbox THEN ended_at END) STORED,
  -- True: the run is closed, and retention has not deleted its conversation since.
  ADD COLUMN has_detail boolean NOT NULL GENERATED ALWAYS AS (
    ended_at IS NOT NULL AND NOT in_sandbox AND (detail_deleted_at IS NULL OR detail_deleted_at < ended_at)) STORED,
  ADD COLUMN facets bigint[] NOT NULL GENERATED ALWAYS AS (run_facets(team_id,
    CASE WHEN NOT in_sandbox AND state <> 'QUEUED' THEN state END, error_code, name, model_id, creator_uid, executor_uid,
    source, execution_location, environment_id, skill_spec, schedule_id, is_of_factory, artifact_types, ancestor_ids, metadata)) STORED;

CREATE INDEX runs_listed ON runs (team_id, list_at, id);
CREATE INDEX runs_created ON runs (team_id, created_at, id);
CREATE INDEX runs_title ON runs (team_id, title COLLATE "C", id);
CREATE INDEX runs_skill ON runs (team_id, skill_spec COLLATE "C", id) WHERE skill_spec IS NOT NULL;
-- The runs with a value. New entries wait in a list that every reader reads, so this list is short.
CREATE INDEX runs_facets ON runs USING gin (facets) WITH (fastupdate = on, gin_pending_list_limit = 256);
-- For retention.
CREATE INDEX runs_closed ON runs (has_detail, closed_at, id) WHERE closed_at IS NOT NULL;
-- For the overlap policies of schedules and automations.
CREATE INDEX runs_live_by_schedule ON runs (schedule_id) WHERE schedule_id IS NOT NULL AND closed_at IS NULL;
CREATE INDEX runs_live_by_automation ON runs ((metadata ->> 'automation_id'))
  WHERE source IN ('WEBHOOK', 'SCHEDULED_AGENT') AND closed_at IS NULL;

-- The phase in predicates of indexes would make each change of an execution write the entries of all its indexes, so they have columns
-- that change less often.
DROP INDEX executions_token, executions_queue, executions_busy, executions_live, executions_of_connection, executions_idle, executions_transcript;
ALTER TABLE executions
  DROP COLUMN has_transcript,
  ADD COLUMN is_queued boolean NOT NULL GENERATED ALWAYS AS (phase = 'queued') STORED,
  -- A worker has the execution, and it has not ended.
  ADD COLUMN is_live boolean NOT NULL GENERATED ALWAYS AS (phase NOT IN ('queued', 'ended')) STORED,
  -- The execution has ended and its transcript is not composed yet.
  ADD COLUMN lacks_transcript boolean NOT NULL GENERATED ALWAYS AS (phase = 'ended' AND transcript_blob IS NULL AND transcript_bytes > 0) STORED;
CREATE UNIQUE INDEX executions_token ON executions (token_hash) WHERE is_live;
CREATE INDEX executions_queue ON executions (pool, team_id, depth DESC, available_at, id) WHERE is_queued;
CREATE INDEX executions_live ON executions (team_id, id) WHERE is_live;
-- The live executions of a worker's connection, whose leases it renews every few seconds.
CREATE INDEX executions_of_connection ON executions (connection_id) WHERE is_live;
CREATE INDEX executions_transcript ON executions (id) WHERE lacks_transcript;

-- The search words of a team and week stood together. Now those of a team do.
DROP INDEX run_search_parts;
DROP FUNCTION move_parts, search_mark, search_week;
CREATE FUNCTION search_mark(team_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN left(encode(int4send(('x' || right(team_id::text, 8))::bit(32)::integer), 'base64'), 6);
UPDATE run_search SET parts = mark_parts(search_mark(team_id), ARRAY(SELECT substr(part, 7) FROM unnest(tsvector_to_array(parts)) part));
ALTER TABLE run_search DROP COLUMN updated_hour;
DROP FUNCTION run_hour;
CREATE INDEX run_search_parts ON run_search USING gin (parts) WITH (fastupdate = on, gin_pending_list_limit = 1024);

CREATE FUNCTION index_run_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search (run_id, team_id, parts)
  SELECT NEW.id, NEW.team_id, mark_parts(search_mark(NEW.team_id), search_parts(NEW.title, NEW.skill_spec, prompt))
  FROM run_requests WHERE run_id = NEW.id
  ON CONFLICT (run_id) DO UPDATE SET parts = excluded.parts;
  RETURN NULL;
END $$;
CREATE TRIGGER index_run_words AFTER UPDATE OF title, skill_spec ON runs
  FOR EACH ROW WHEN ((OLD.title, OLD.skill_spec) IS DISTINCT FROM (NEW.title, NEW.skill_spec)) EXECUTE FUNCTION index_run_words();

-- Keeps the artifact types of a run. It locks the run's row first: of artifacts that are added and deleted at the same time none is missed.
CREATE FUNCTION keep_artifact_types() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  run uuid := coalesce(NEW.run_id, OLD.run_id);
BEGIN
  PERFORM FROM runs WHERE id = run FOR NO KEY UPDATE;
  UPDATE runs SET artifact_types = ready.types
  FROM (SELECT coalesce(array_agg(DISTINCT artifact_type), '{}') AS types FROM artifacts WHERE run_id = run AND is_ready) ready
  WHERE runs.id = run AND runs.artifact_types <> ready.types;
  RETURN NULL;
END $$;
CREATE TRIGGER keep_artifact_types AFTER INSERT OR DELETE OR UPDATE OF is_ready ON artifacts
  FOR EACH ROW EXECUTE FUNCTION keep_artifact_types();

CREATE OR REPLACE FUNCTION delete_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_events WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM executions WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM run_requests WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM attachments WHERE run_id IN (SELECT id FROM deleted_runs);
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION truncate_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE run_events, executions, run_requests, attachments, team_storage, storage_changes CASCADE;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes)
  SELECT r.team_id, sum(bytes_of_request(q.prompt, q.config)) FROM new_requests q JOIN runs r ON r.id = q.run_id GROUP BY r.team_id;
  RETURN NULL;
END $$;
CREATE TRIGGER count_new_runs AFTER INSERT ON run_requests REFERENCING NEW TABLE AS new_requests
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_runs();

CREATE OR REPLACE FUNCTION count_deleted_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes)
  SELECT OLD.team_id, -(bytes_of_request(prompt, config) + OLD.event_bytes + OLD.transcript_bytes + bytes_of_run_parts(OLD.id))
  FROM run_requests WHERE run_id = OLD.id;
  RETURN OLD;
END $$;

-- The contents of runs in progress are in run_requests now.
CREATE OR REPLACE FUNCTION write_revision(kind_of text, uid_of text, team uuid, author_kind_of text, author_uid_of text, content_of jsonb)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  last content_revisions;
  accepted jsonb;
  number integer;
  earlier bigint;
  bytes bigint;
BEGIN
  SELECT * INTO last FROM content_revisions c WHERE c.kind = kind_of AND c.uid = uid_of ORDER BY c.revision DESC LIMIT 1;
  IF last.content = content_of AND last.superseded_at IS NULL THEN
    RETURN last.revision;
  END IF;
  number := coalesce(last.revision, 0) + 1;
  IF last.superseded_at IS NOT NULL THEN
    -- The content was deleted, and this is another one under its UID.
    last := NULL;
  END IF;
  SELECT r.texts INTO accepted FROM acceptances a JOIN content_revisions r USING (kind, uid, revision)
    WHERE author_kind_of = 'user' AND a.user_uid = author_uid_of AND a.kind = kind_of AND a.uid = uid_of;
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = last.revision AND c.superseded_at IS NULL;
  INSERT INTO content_revisions (kind, uid, revision, team_id, author_kind, author_uid, content, texts)
    VALUES (kind_of, uid_of, number, team, author_kind_of, author_uid_of, content_of, texts_after_change(
      last.content, last.texts, accepted, content_of, number, actor_of(author_kind_of, author_uid_of), true));
  IF number <= 6 THEN
    RETURN number;
  END IF;
  -- A look at the revisions in need reads all runs in progress, so some more than a hundred may gather between two of them.
  SELECT count(*), sum(pg_column_size(c.content)) INTO earlier, bytes FROM content_revisions c
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision < number;
  IF earlier >= 120 OR (earlier > 5 AND bytes > 8 * 1024 * 1024) THEN
    DELETE FROM content_revisions c USING (
      SELECT k.revision, row_number() OVER later AS rank, sum(pg_column_size(k.content)) OVER later AS bytes
      FROM content_revisions k WHERE k.kind = kind_of AND k.uid = uid_of AND k.revision < number
      WINDOW later AS (ORDER BY k.revision DESC)
    ) k
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = k.revision
      AND (k.rank > 100 OR (k.rank > 5 AND k.bytes > 4 * 1024 * 1024))
      AND NOT EXISTS (SELECT FROM acceptances a WHERE a.kind = kind_of AND a.uid = uid_of AND a.revision = c.revision)
      AND c.revision NOT IN (
        SELECT (e->>'revision')::integer FROM runs r JOIN run_requests q ON q.run_id = r.id CROSS JOIN jsonb_array_elements(q.contents) e
        WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
          AND e->>'kind' = kind_of AND e->>'uid' = uid_of AND e->>'revision' IS NOT NULL);
  END IF;
  RETURN number;
END $$;
CREATE OR REPLACE FUNCTION is_revision_needed(c content_revisions) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM acceptances a WHERE a.kind = c.kind AND a.uid = c.uid AND a.revision = c.revision)
    OR EXISTS (SELECT FROM runs r JOIN run_requests q ON q.run_id = r.id
      WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
      AND q.contents @> jsonb_build_array(jsonb_build_object('kind', c.kind, 'uid', c.uid, 'revision', c.revision)))
$$;

CREATE OR REPLACE FUNCTION recount_team_storage() RETURNS bigint LANGUAGE sql AS $$
  WITH part (run_id, bytes) AS (
    SELECT run_id, coalesce(workspace_bytes, 0) + coalesce(memory_bytes, 0) FROM executions WHERE workspace_bytes IS NOT NULL OR memory_bytes IS NOT NULL
    UNION ALL SELECT run_id, bytes_of_artifact(size_bytes, data) FROM artifacts
    UNION ALL SELECT run_id, size_bytes FROM attachments
    UNION ALL SELECT run_id, octet_length(message) FROM followups
    UNION ALL SELECT s.run_id, f.size_bytes FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
    UNION ALL SELECT run_id, octet_length(content) FROM run_changes WHERE content IS NOT NULL
  ), stored (team_id, bytes) AS (
    SELECT team_id, bytes_of_request(prompt, config) + event_bytes + transcript_bytes FROM runs JOIN run_requests ON run_id = runs.id
    UNION ALL SELECT r.team_id, p.bytes FROM part p JOIN runs r ON r.id = p.run_id
  ), difference (team_id, bytes) AS (
    SELECT team_id, bytes FROM stored
    UNION ALL SELECT team_id, -bytes FROM team_storage
    UNION ALL SELECT team_id, -bytes FROM storage_changes
  ), added AS (
    INSERT INTO storage_changes (team_id, bytes)
    SELECT team_id, sum(bytes) FROM difference GROUP BY team_id HAVING sum(bytes) <> 0 RETURNING 1
  )
  SELECT count(*) FROM added;
$$;

-- Room for the versions of rows that change often, so that their changes write no index entries. Old rows stay packed.
ALTER TABLE runs SET (fillfactor = 60);
ALTER TABLE executions SET (fillfactor = 60);
ANALYZE runs, run_requests, executions, run_search;
