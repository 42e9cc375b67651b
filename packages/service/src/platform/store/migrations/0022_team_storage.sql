-- Counts the bytes that each team stores. The transaction that stores or deletes bytes also adds a row of storage_changes, so the
-- count is exact after a crash, and transactions of one team do not wait for one another. A loop of the service adds the rows to
-- team_storage. The bytes of a team are the sum of both.

CREATE TABLE team_storage (
  team_id uuid PRIMARY KEY,
  bytes bigint NOT NULL
);

CREATE TABLE storage_changes (
  team_id uuid NOT NULL,
  id bigint GENERATED ALWAYS AS IDENTITY,
  bytes bigint NOT NULL,
  PRIMARY KEY (team_id, id)
);

-- Returns the bytes of the request of a run.
CREATE FUNCTION bytes_of_request(prompt text, config jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT octet_length(prompt) + octet_length(config::text)
$$;

-- Returns the bytes of the row of an artifact and of its blob.
CREATE FUNCTION bytes_of_artifact(size_bytes bigint, data jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(size_bytes, 0) + octet_length(data::text)
$$;

-- Adds a change of the team of a run. A run whose row is deleted in this transaction has subtracted all its bytes, and none is added.
CREATE FUNCTION change_storage_of_run(run uuid, change bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO storage_changes (team_id, bytes) SELECT r.team_id, change FROM runs r WHERE r.id = run AND change <> 0;
$$;

CREATE FUNCTION count_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes) SELECT team_id, sum(bytes_of_request(prompt, config)) FROM new_runs GROUP BY team_id;
  RETURN NULL;
END $$;
CREATE TRIGGER count_new_runs AFTER INSERT ON runs REFERENCING NEW TABLE AS new_runs FOR EACH STATEMENT EXECUTE FUNCTION count_new_runs();

CREATE FUNCTION count_run_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes)
  VALUES (NEW.team_id, NEW.event_bytes + NEW.transcript_bytes - OLD.event_bytes - OLD.transcript_bytes);
  RETURN NULL;
END $$;
CREATE TRIGGER count_run_events AFTER UPDATE OF event_bytes, transcript_bytes ON runs FOR EACH ROW
  WHEN (OLD.event_bytes + OLD.transcript_bytes <> NEW.event_bytes + NEW.transcript_bytes) EXECUTE FUNCTION count_run_events();

CREATE FUNCTION count_execution_files() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM change_storage_of_run(NEW.run_id, coalesce(NEW.workspace_bytes, 0) + coalesce(NEW.memory_bytes, 0)
    - coalesce(OLD.workspace_bytes, 0) - coalesce(OLD.memory_bytes, 0));
  RETURN NULL;
END $$;
CREATE TRIGGER count_execution_files AFTER UPDATE OF workspace_bytes, memory_bytes ON executions
  FOR EACH ROW EXECUTE FUNCTION count_execution_files();

CREATE FUNCTION count_artifact() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM change_storage_of_run(NEW.run_id, bytes_of_artifact(NEW.size_bytes, NEW.data));
  ELSIF TG_OP = 'UPDATE' THEN
    PERFORM change_storage_of_run(NEW.run_id, bytes_of_artifact(NEW.size_bytes, NEW.data) - bytes_of_artifact(OLD.size_bytes, OLD.data));
  ELSE
    PERFORM change_storage_of_run(OLD.run_id, -bytes_of_artifact(OLD.size_bytes, OLD.data));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_artifact AFTER INSERT OR DELETE OR UPDATE OF size_bytes, data ON artifacts FOR EACH ROW EXECUTE FUNCTION count_artifact();

-- Counts the bytes of all attachments of a statement at once: a batch of deliveries writes the payload of each as a file of its run.
CREATE FUNCTION count_new_attachments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM new_attachments) THEN
    INSERT INTO storage_changes (team_id, bytes)
    SELECT r.team_id, sum(a.size_bytes) FROM new_attachments a JOIN runs r ON r.id = a.run_id GROUP BY r.team_id
    HAVING sum(a.size_bytes) <> 0;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_new_attachments AFTER INSERT ON attachments REFERENCING NEW TABLE AS new_attachments
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_attachments();
CREATE FUNCTION count_attachment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM change_storage_of_run(OLD.run_id, -OLD.size_bytes);
  RETURN NULL;
END $$;
CREATE TRIGGER count_attachment AFTER DELETE ON attachments FOR EACH ROW EXECUTE FUNCTION count_attachment();

CREATE FUNCTION count_followup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    PERFORM change_storage_of_run(NEW.run_id, octet_length(NEW.message));
  ELSE
    PERFORM change_storage_of_run(OLD.run_id, -octet_length(OLD.message));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_followup AFTER INSERT OR DELETE ON followups FOR EACH ROW EXECUTE FUNCTION count_followup();

-- The files of a handoff count from their announcement. They are deleted with the handoff, whose row still exists before its delete.
CREATE FUNCTION count_handoff_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM change_storage_of_run(s.run_id, NEW.size_bytes) FROM snapshots s WHERE s.id = NEW.snapshot_id;
  RETURN NULL;
END $$;
CREATE TRIGGER count_handoff_file AFTER INSERT ON snapshot_files FOR EACH ROW EXECUTE FUNCTION count_handoff_file();
CREATE FUNCTION count_deleted_handoff() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM change_storage_of_run(OLD.run_id, -coalesce(sum(size_bytes), 0)::bigint) FROM snapshot_files WHERE snapshot_id = OLD.id;
  RETURN OLD;
END $$;
CREATE TRIGGER count_deleted_handoff BEFORE DELETE ON snapshots FOR EACH ROW EXECUTE FUNCTION count_deleted_handoff();

CREATE FUNCTION count_run_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before bigint := 0;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    before := coalesce(octet_length(OLD.content), 0);
  END IF;
  PERFORM change_storage_of_run(NEW.run_id, coalesce(octet_length(NEW.content), 0) - before);
  RETURN NULL;
END $$;
CREATE TRIGGER count_run_changes AFTER INSERT OR UPDATE OF content ON run_changes FOR EACH ROW EXECUTE FUNCTION count_run_changes();

-- Returns the bytes that a run stores, without those of its row. The caller has locked the run, or takes the sum of one snapshot.
CREATE FUNCTION bytes_of_run_parts(run uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (
    (SELECT coalesce(sum(coalesce(workspace_bytes, 0) + coalesce(memory_bytes, 0)), 0) FROM executions WHERE run_id = run)
    + (SELECT coalesce(sum(bytes_of_artifact(size_bytes, data)), 0) FROM artifacts WHERE run_id = run)
    + (SELECT coalesce(sum(size_bytes), 0) FROM attachments WHERE run_id = run)
    + (SELECT coalesce(sum(octet_length(message)), 0) FROM followups WHERE run_id = run)
    + (SELECT coalesce(sum(f.size_bytes), 0) FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id WHERE s.run_id = run)
    + (SELECT coalesce(sum(octet_length(content)), 0) FROM run_changes WHERE run_id = run)
  )::bigint;
$$;

-- Subtracts all bytes of a run before its parts are deleted.
CREATE FUNCTION count_deleted_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes)
  VALUES (OLD.team_id, -(bytes_of_request(OLD.prompt, OLD.config) + OLD.event_bytes + OLD.transcript_bytes + bytes_of_run_parts(OLD.id)));
  RETURN OLD;
END $$;
CREATE TRIGGER count_deleted_run BEFORE DELETE ON runs FOR EACH ROW EXECUTE FUNCTION count_deleted_run();

-- Adds the difference between the rows and the count of each team. One statement reads both from one snapshot, so the difference is
-- right while others store and delete. Returns the number of teams whose count was wrong.
CREATE FUNCTION recount_team_storage() RETURNS bigint LANGUAGE sql AS $$
  WITH part (run_id, bytes) AS (
    SELECT run_id, coalesce(workspace_bytes, 0) + coalesce(memory_bytes, 0) FROM executions WHERE workspace_bytes IS NOT NULL OR memory_bytes IS NOT NULL
    UNION ALL SELECT run_id, bytes_of_artifact(size_bytes, data) FROM artifacts
    UNION ALL SELECT run_id, size_bytes FROM attachments
    UNION ALL SELECT run_id, octet_length(message) FROM followups
    UNION ALL SELECT s.run_id, f.size_bytes FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
    UNION ALL SELECT run_id, octet_length(content) FROM run_changes WHERE content IS NOT NULL
  ), stored (team_id, bytes) AS (
    SELECT team_id, bytes_of_request(prompt, config) + event_bytes + transcript_bytes FROM runs
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
