-- Changed files of the git repositories of runs.

-- The last report of a run's sandbox, and the last request for one.
CREATE TABLE run_changes (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
  -- Number of the requests so far. The agent gets each over its inbox.
  asked integer NOT NULL DEFAULT 0,
  asked_at timestamptz,
  reported_at timestamptz,
  -- The repositories as JSON, compressed with gzip; NULL: none were reported, or retention deleted them.
  content bytea
);

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

CREATE OR REPLACE FUNCTION bytes_of_run_parts(run uuid) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT (
    (SELECT coalesce(sum(coalesce(workspace_bytes, 0) + coalesce(memory_bytes, 0)), 0) FROM executions WHERE run_id = run)
    + (SELECT coalesce(sum(bytes_of_artifact(size_bytes, data)), 0) FROM artifacts WHERE run_id = run)
    + (SELECT coalesce(sum(size_bytes), 0) FROM attachments WHERE run_id = run)
    + (SELECT coalesce(sum(octet_length(message)), 0) FROM followups WHERE run_id = run)
    + (SELECT coalesce(sum(f.size_bytes), 0) FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id WHERE s.run_id = run)
    + (SELECT coalesce(sum(octet_length(content)), 0) FROM run_changes WHERE run_id = run)
  )::bigint;
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
